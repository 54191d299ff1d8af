"""Space permissions and restrictions of pages, intersected by the members of their groups."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.sources.kinds.confluence import ConfluenceConnector
from retrieval.sources.protocol import SourceUnreadable

USERS = ["u1", "u2", "u3"]
GROUPS = ["a", "b", "c"]
NAMES = st.sets(st.sampled_from([*USERS, *GROUPS]), max_size=4)
MEMBERS = st.dictionaries(st.sampled_from(GROUPS), st.sets(st.sampled_from(USERS)), max_size=3)


def subjects(names):
    return {
        "user": {"results": [{"accountId": name, "email": f"{name}@example.org"} for name in sorted(names & {*USERS})]},
        "group": {"results": [{"name": name, "id": f"id-{name}"} for name in sorted(names & {*GROUPS})]},
    }


def page_of(limits):
    own, *above = [{"restrictions": {"read": {"restrictions": subjects(names)}}} for names in limits or [set()]]
    return {**own, "ancestors": above}


class _Scripted(ConfluenceConnector):
    def __init__(self, members, unreadable=()):
        options = {"url": "https://wiki.example.org", "space": "DOC", "takes_readers": True}
        super().__init__(options, 1)
        self.members, self.unreadable = members, unreadable

    def _list_members(self, rights, group):
        if group in self.unreadable:
            raise SourceUnreadable(group)
        return [{"accountId": name, "email": f"{name}@example.org"} for name in self.members.get(group, ())]


def find_admitted(connector, space, limits, members):
    rights = connector._rights
    operation = {"operation": "read", "targetType": "space"}
    rights.space = rights.read_space_readers([{"operation": operation, "subjects": subjects(space)}])
    found = connector._find_page_readers(rights, page_of(limits), "")
    assert not found.unread
    assert not found.is_everybody
    named = {address.partition("@")[0] for address in found.users}
    return {user for user in USERS if user in named or any(user in members.get(group, ()) for group in found.groups)}


def may_read(user, names, members):
    return user in names or any(user in members.get(group, ()) for group in names)


@given(space=NAMES.filter(bool), limits=st.lists(NAMES, max_size=3), members=MEMBERS)
def test_exactly_those_may_read_whom_the_space_and_each_restriction_admit(space, limits, members):
    expected = {
        user for user in USERS if all(may_read(user, names, members) for names in (space, *filter(None, limits)))
    }
    assert find_admitted(_Scripted(members), space, limits, members) == expected


@given(
    space=NAMES.filter(bool),
    limits=st.lists(NAMES, max_size=3),
    members=MEMBERS,
    unreadable=st.sets(st.sampled_from(GROUPS)),
)
def test_unreadable_members_admit_nobody_more(space, limits, members, unreadable):
    allowed = {
        user for user in USERS if all(may_read(user, names, members) for names in (space, *filter(None, limits)))
    }
    assert find_admitted(_Scripted(members, unreadable), space, limits, members) <= allowed
