"""Accounts that others vouch for: single sign-on, and an LDAP directory."""
