import pytest

from ragsite.accounts.claims import convert_saml_attributes, map_groups, read_claims


def read(userinfo, id_token=None, **options):
    data = {"userinfo": userinfo, "id_token": id_token or {}}
    return read_claims(data, **{"groups_claim": "groups", "trust_email": False, **options})


@pytest.mark.parametrize(
    ("verified", "trusted", "email"),
    [
        (True, False, "ada@example.org"),
        ("true", False, "ada@example.org"),
        (False, False, ""),
        ("false", False, ""),
        (1, False, "ada@example.org"),
        (None, False, ""),
        (None, True, "ada@example.org"),
    ],
)
def test_an_address_counts_when_the_provider_answers_for_it(verified, trusted, email):
    assert read({"email": " Ada@Example.org ", "email_verified": verified}, trust_email=trusted).email == email


@pytest.mark.parametrize("email", [None, 7, ["a@example.org"]])
def test_an_address_that_is_no_text_is_none(email):
    assert read({"email": email, "email_verified": True}).email == ""


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (["engineers", "/hr/payroll"], {"engineers", "hr/payroll"}),
        ("engineers", {"engineers"}),
        ([], set()),
        (None, set()),
        (7, set()),
        ([7, "", " ", "x\0y", {"a": 1}], set()),
    ],
)
def test_groups_are_the_names_in_the_claim(value, names):
    assert read({"groups": value}).groups == names


def test_groups_are_found_inside_of_other_claims_and_in_the_id_token():
    assert read({"sub": "1"}, {"sub": "1", "groups": ["a"]}).groups == {"a"}
    assert read({"realm_access": {"roles": ["a"]}}, groups_claim="realm_access.roles").groups == {"a"}
    assert read({"https://x.example/groups": ["a"]}, groups_claim="https://x.example/groups").groups == {"a"}
    assert read({}, groups_claim="realm_access.roles").groups == set()


def test_groups_that_the_provider_left_out_are_noticed():
    assert read({}, {"_claim_names": {"groups": "src1"}}).groups_left_out
    assert not read({"groups": ["a"]}).groups_left_out


def test_two_subjects_are_noticed():
    assert read({"sub": "1"}, {"sub": "1"}).is_one_subject
    assert read({"sub": "1"}).is_one_subject
    assert not read({"sub": "1"}, {"sub": "2"}).is_one_subject


def test_attributes_of_saml_are_claims_without_a_verified_address():
    data = convert_saml_attributes(
        {"mail": ["Ada@example.org"], "groups": ["a", "b"], "email_verified": ["true"]}, "mail"
    )
    untrusted = read_claims(data, groups_claim="groups", trust_email=False)
    assert (untrusted.email, untrusted.groups) == ("", {"a", "b"})
    assert read_claims(data, groups_claim="groups", trust_email=True).email == "ada@example.org"
    assert read_claims(convert_saml_attributes({}, "mail"), groups_claim="groups", trust_email=True).email == ""


def test_a_mapping_renames_groups_and_leaves_out_the_others():
    assert map_groups(frozenset({"8f0c", "other"}), {"8f0c": "Engineers"}) == {"Engineers"}
    assert map_groups(frozenset({"a", "b" * 151}), {}) == {"a"}
