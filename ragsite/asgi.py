"""Entry point for ASGI servers. WSGI is not offered: it would hold answers back until they are complete."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")

application = get_asgi_application()
