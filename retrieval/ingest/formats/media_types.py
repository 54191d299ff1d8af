"""The media types of the formats that are read. PURE."""

from __future__ import annotations

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODT = "application/vnd.oasis.opendocument.text"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
ODP = "application/vnd.oasis.opendocument.presentation"
EPUB = "application/epub+zip"
RTF = "application/rtf"
EML = "message/rfc822"
MSG = "application/vnd.ms-outlook"
ZIP = "application/zip"
MARKDOWN = "text/markdown"
HTML = "text/html"
PLAIN = "text/plain"
RST = "text/x-rst"
CSV = "text/csv"
TSV = "text/tab-separated-values"
JSON = "application/json"
JSON_LINES = "application/x-ndjson"

# Extensions by media type.
SOURCE_CODE = {
    "text/x-python": "py pyi",
    "text/javascript": "js mjs cjs jsx",
    "text/x-typescript": "ts tsx",
    "text/x-java": "java",
    "text/x-kotlin": "kt",
    "text/x-scala": "scala",
    "text/x-swift": "swift",
    "text/x-csharp": "cs",
    "text/x-c": "c h",
    "text/x-c++": "cc cpp cxx hpp",
    "text/x-go": "go",
    "text/x-rust": "rs",
    "text/x-ruby": "rb",
    "text/x-php": "php",
    "text/x-shellscript": "sh bash zsh",
    "text/x-powershell": "ps1",
    "text/x-sql": "sql",
    "text/x-yaml": "yaml yml",
    "text/x-toml": "toml",
    "text/x-ini": "ini cfg conf properties env",
    "text/xml": "xml xsd",
    "text/css": "css scss",
    "text/x-lua": "lua",
    "text/x-r": "r",
    "text/x-perl": "pl",
    "text/x-terraform": "tf",
    "text/x-protobuf": "proto",
    "text/x-graphql": "graphql",
}
