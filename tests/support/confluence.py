"""A scripted Confluence whose spaces and pages have readers, in the answers of the cloud or of a server."""

import json
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.sources import WebServer

A_PAGE = 3


def is_address(name):
    return "@" in name and not name.startswith("mail:")


class ConfluenceWithRights(WebServer):
    """Spaces with pages.

    ``spaces`` has for each key the names that may see it: groups, and addresses of accounts; "*" is everybody.
    ``limits`` has those of pages by title. ``refused`` are beginnings of paths that the account may not ask.
    """

    def __init__(self, shape="cloud"):
        super().__init__()
        self.shape = shape
        self.spaces, self.pages, self.limits, self.groups = {}, {}, {}, {}
        self.refused, self.asked = [], []
        # Restrictions name nobody, and say only how many they name.
        self.hides_names = False
        # Listings with restrictions are refused, as if an ancestor were in the trash.
        self.has_trash = False

    def put(self, space, title, text, above=()):
        number = self.pages[title]["number"] if title in self.pages else 100 + len(self.pages)
        version = self.pages[title]["version"] + 1 if title in self.pages else 1
        self.pages[title] = {"space": space, "number": number, "version": version, "text": text, "above": above}

    def options_of(self, space, **others):
        return {"url": f"{self.url}/wiki", "space": space, "password": "token", "takes_readers": True, **others}

    def answer(self, request):
        parts = urlsplit(request.path)
        path = unquote(parts.path.removeprefix("/wiki/rest/api/"))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append(path)
        status, said = 403, {"statusCode": 403}
        if not any(path.startswith(each) for each in self.refused):
            status, said = self.say(path.split("/"), query)
        request.send(json.dumps(said).encode(), status, Content_Type="application/json")

    def say(self, path, query):
        match path:
            case ["content", "search"]:
                return self._search(query)
            case ["space", key] if self.shape == "cloud":
                return 200, {"key": key, "permissions": self._permissions(key)}
            case ["space", key]:
                return 200, {"key": key, "_expandable": {}}
            case ["space", key, "permissions"]:
                return 200, self._permissions(key)
            case ["group", name, "member" | "membersByGroupId"]:
                named = name.removeprefix("id-") if path[-1] == "membersByGroupId" else name
                if named not in self.groups or (self.shape == "cloud") != (named != name):
                    return 404, {}
                return 200, {"results": list(map(self._user, self.groups[named])), "_links": {}}
        return 404, {}

    def _search(self, query):
        if query["cql"].startswith("id="):
            found = [page for page in self.pages.items() if str(page[1]["number"]) == query["cql"].removeprefix("id=")]
            return 200, {
                "results": [
                    {"title": title, "body": {"export_view": {"value": f"<p>{page['text']}</p>"}}}
                    for title, page in found
                ]
            }
        expanded = query["expand"]
        if self.has_trash and "ancestors" in expanded:
            return 404, {"message": "No content with id"}
        key = query["cql"].partition('"')[2].partition('"')[0]
        start = int(query.get("start", 0))
        titles = sorted(title for title, page in self.pages.items() if page["space"] == key)
        results = [self._page(title, expanded) for title in titles[start : start + A_PAGE]]
        following = f"/rest/api/content/search?cql=space%3D%22{key}%22&start={start + A_PAGE}&expand=version"
        return 200, {"results": results, "_links": {"next": following} if len(titles) > start + A_PAGE else {}}

    def _page(self, title, expanded):
        page = self.pages[title]
        said = {"id": str(page["number"]), "title": title, "version": {"number": page["version"]}, "_links": {}}
        if "restrictions.read" in expanded:
            said |= self._restrictions(title)
            said["ancestors"] = [{"title": each, **self._restrictions(each)} for each in page["above"]]
        return said

    def _restrictions(self, title):
        return {"restrictions": {"read": {"restrictions": self._subjects(self.limits.get(title, []))}}}

    def _subjects(self, names):
        if self.hides_names:
            return {"user": {"results": [], "size": len(names)}, "group": {"results": [], "size": 0}}
        return {
            "user": {"results": [self._user(name) for name in names if is_address(name)]},
            "group": {"results": [self._group(name) for name in names if not is_address(name)]},
        }

    def _user(self, address):
        name = address.partition("@")[0]
        if self.shape == "cloud":
            return {"type": "known", "accountId": f"557058:{name}", "email": address}
        return {"type": "known", "username": name, "userKey": f"key-{name}"}

    def _group(self, name):
        return {"type": "group", "name": name, **({"id": f"id-{name}"} if self.shape == "cloud" else {})}

    def _permissions(self, key):
        names = self.spaces[key]
        if self.shape == "cloud":
            operation = {"operation": "read", "targetType": "space"}
            each = [{"operation": operation, "subjects": self._subjects([name])} for name in names if name != "*"]
            open_to_all = [{"operation": operation, "anonymousAccess": True}] if "*" in names else []
            other = {"operation": "create", "targetType": "page"}
            return [*each, *open_to_all, {"operation": other, "anonymousAccess": True}]
        operation = {"operationKey": "read", "targetType": "space"}
        kinds = {"*": {"type": "anonymous"}}
        return [
            {
                "operation": operation,
                "subject": kinds.get(name) or (self._user(name) if is_address(name) else self._group(name)),
            }
            for name in names
        ]
