"""Clients that open pages, and the texts of pages."""

from django.contrib.auth.models import Permission, User


def messages(response):
    return [str(message) for message in response.context["messages"]]


def boss():
    return User.objects.filter(username="boss").first() or User.objects.create_superuser("boss")


def staff(*codenames):
    """One of the staff who has these permissions alone."""
    user = User.objects.create_user("eva", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user
