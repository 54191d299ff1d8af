"""Files of folders and repositories that are no documents: passed over, or named for what they are."""

import io
import zipfile

import pytest
from dulwich import porcelain
from dulwich.objects import Tree

from retrieval.documents.extraction import extract
from retrieval.documents.formats import is_leftover_file
from retrieval.exceptions import DocumentRejected
from tests.support.sources import make_source, names, numbers, run_once

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (b"4d7a" * 16)
LITTER = ["~$plan.docx", "Thumbs.db", "desktop.ini", ".DS_Store", "._plan.pdf", ".~lock.plan.odt#", "plan.md~",
          "#plan.md#", "plan.md.bak", "plan.md.swp", "~WRL0005.tmp", "sub/ehthumbs.db", "__MACOSX/plan.md"]  # fmt: skip
DOCUMENTS = ["plan.md", "a~b.md", "C#.md", "thumbs.md", "backup.md", "sub/tmp/plan.md", "~plan.md"]
pytestmark = pytest.mark.django_db


def fill(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def said(run):
    return dict(run.details["failures"])


def test_litter_is_told_by_its_name():
    assert all(map(is_leftover_file, LITTER))
    assert not any(map(is_leftover_file, DOCUMENTS))


def test_litter_is_passed_over_in_folders_repositories_and_archives(tmp_path, collection):
    files = dict.fromkeys((*LITTER, *DOCUMENTS), b"About the plan.\n")
    folder = fill(tmp_path / "shelf", files)
    run = run_once(make_source(collection, "folder", {"path": str(folder)}, name="F"))
    assert numbers(run) == (len(DOCUMENTS), 0, 0, 0, 0)
    porcelain.init(str(folder))
    porcelain.add(str(folder), paths=[str(folder / name) for name in files])
    commit(folder)
    run = run_once(make_source(collection, "git", {"repository": str(folder)}, name="G"))
    assert (run.added, run.failed) == (len(DOCUMENTS), 0)
    assert {name[2:] for name in names()} == set(DOCUMENTS)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    extracted = extract(packed.getvalue(), "a.zip")
    assert {member.name for member in extracted.members} == set(DOCUMENTS)
    assert not extracted.left_out


def commit(folder):
    author = b"Ann <ann@example.org>"
    return porcelain.commit(str(folder), message=b"A change.", author=author, committer=author, sign=False)


def test_pointers_of_git_lfs_are_named_wherever_they_come_from(tmp_path, collection):
    files = {
        "plan.docx": POINTER,
        "plan.pdf": POINTER,
        "list.csv": POINTER,
        "notes.txt": POINTER,
        "pump.md": b"It hums.\n",
    }
    folder = fill(tmp_path / "shelf", files)
    porcelain.init(str(folder))
    porcelain.add(str(folder), paths=[str(folder / name) for name in files])
    commit(folder)
    for kind, options in (("folder", {"path": str(folder)}), ("git", {"repository": str(folder)})):
        run = run_once(make_source(collection, kind, options, name=kind))
        assert (run.added, run.failed) == (1, 4)
        assert set(said(run)) == set(files) - {"pump.md"}
        assert all("is a Git LFS pointer, not the file" in why for why in said(run).values())
    with pytest.raises(DocumentRejected, match=r"list\.csv is a Git LFS pointer, not the file"):
        extract(POINTER, "list.csv")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    extracted = extract(packed.getvalue(), "a.zip")
    assert [member.name for member in extracted.members] == ["pump.md"]
    left_out = [(each.kind, each.names) for each in extracted.left_out]
    assert left_out == [("pointers", ("plan.docx", "plan.pdf", "list.csv", "notes.txt"))]
    assert "git-lfs" in extract(b"# Notes\n\n" + POINTER, "about.md").text


def test_submodules_are_named_in_each_run(tmp_path, collection):
    folder = fill(tmp_path / "shelf", {"pump.md": b"It hums.\n"})
    repository = porcelain.init(str(folder))
    porcelain.add(str(folder), paths=[str(folder / "pump.md")])
    first = repository[commit(folder)]
    vendored = Tree()
    vendored.add(b"pump", 0o160000, b"4d" * 20)
    tree = repository[first.tree]
    tree.add(b"vendor", 0o040000, vendored.id)
    changed = first.copy()
    changed.tree, changed.parents = tree.id, [first.id]
    for each in (vendored, tree, changed):
        repository.object_store.add_object(each)
    repository.refs[b"HEAD"] = changed.id
    source = make_source(collection, "git", {"repository": str(folder)}, name="G")
    for added in (1, 0):
        run = run_once(source)
        assert (run.added, run.failed) == (added, 0)
        assert run.details["left_out"] == [["vendor/pump", "a submodule: add its repository as a source of its own"]]
