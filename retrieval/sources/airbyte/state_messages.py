"""Combine an Airbyte connector's STATE messages, which say where its next call continues.

A message is about one stream (STREAM), about all streams (GLOBAL), or in the connector's own form (LEGACY):
https://docs.airbyte.com/platform/understanding-airbyte/airbyte-protocol#state--checkpointing
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from retrieval.sources.airbyte.streams import join_name

_LEGACY, _GLOBAL = "legacy", "global"
# The last STATE message of each stream, or one message that is GLOBAL or LEGACY.
Snapshot = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StateMessage:
    content: Mapping[str, Any]


class StateCollector:
    """Collects a connector's last STATE messages about ``streams``, for its next call."""

    def __init__(self, stored: str, streams: Collection[str]) -> None:
        self._streams = streams
        self._parts: dict[str, Any] = {}
        kept = json.loads(stored) if stored else []
        for each in kept if isinstance(kept, list) else [{"type": "LEGACY", "data": kept}]:
            self.add_message(StateMessage(each))

    def add_message(self, message: StateMessage) -> bool:
        """Remember a STATE message; return False if it is malformed or about another stream."""
        content = message.content
        stream, whole = content.get("stream"), content.get("global")
        match content.get("type"):
            case "STREAM" if isinstance(stream, dict):
                return self._take_stream(stream)
            case "GLOBAL" if isinstance(whole, dict):
                self._parts = {_GLOBAL: {"type": "GLOBAL", "global": whole}}
                return True
            case "LEGACY" | None if isinstance(content.get("data"), dict):
                self._parts = {_LEGACY: content["data"]}
                return True
        return False

    def _take_stream(self, stream: dict[str, Any]) -> bool:
        descriptor = stream.get("stream_descriptor")
        if not isinstance(descriptor, dict):
            return False
        name = join_name(descriptor.get("namespace"), descriptor.get("name"))
        if name not in self._streams:
            return False
        # A stored message of another type is from an older version of the connector.
        self._parts = {key: part for key, part in self._parts.items() if key.startswith("stream ")}
        self._parts[f"stream {name}"] = {"type": "STREAM", "stream": stream}
        return True

    def copy_state(self) -> Snapshot:
        return dict(self._parts)


def serialise_state(parts: Snapshot) -> str:
    if not parts:
        return ""
    return json.dumps(parts[_LEGACY] if _LEGACY in parts else list(parts.values()))
