"""Users of the tests: each function creates one, in the roles that a site knows."""

from django.contrib.auth.models import Permission, User


def make_reader(name="reader", email="", password=None, **fields):
    """Create a user without rights of the staff. Without a password, only `force_login` signs in."""
    return User.objects.create_user(name, email, password, **fields)


def make_staff(name="clerk", *codenames, **fields):
    """Create a user who may open the admin, with the permissions of these codenames, in any app."""
    user = User.objects.create_user(name, is_staff=True, **fields)
    if codenames:
        found = Permission.objects.filter(codename__in=codenames)
        assert {each.codename for each in found} == set(codenames)
        user.user_permissions.set(found)
    return user


def make_curator(name="curator", **fields):
    """Create a member of staff with all permissions for collections, documents and their sources."""
    user = make_staff(name, **fields)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="retrieval"))
    return user


def make_superuser(name="boss", **fields):
    return User.objects.create_superuser(name, **fields)
