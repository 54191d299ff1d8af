"""Twisted's IMAP server on loopback, with one mailbox: the files of a folder, whose names begin with their numbers.

``python -m tests.support.imap_server FOLDER`` prints its port.
"""

import sys
from email import message_from_bytes
from io import BytesIO
from pathlib import Path

from twisted.cred import checkers, portal
from twisted.internet import reactor
from twisted.internet.protocol import Factory
from twisted.mail import imap4
from twisted.mail.interfaces import IMailboxIMAP, IMessageIMAP, IMessageIMAPFile
from zope.interface import implementer


@implementer(IMessageIMAP, IMessageIMAPFile)
class _Message:
    def __init__(self, path):
        self.data, self._uid = path.read_bytes(), int(path.name.partition("-")[0])

    def getUID(self):
        return self._uid

    def getFlags(self):
        return []

    def getInternalDate(self):
        return "01-Jan-2026 00:00:00 +0000"

    def getHeaders(self, negate, *names):
        return {name.lower(): value for name, value in message_from_bytes(self.data).items()}

    def getBodyFile(self):
        return BytesIO(self.data.partition(b"\n\n")[2])

    def getSize(self):
        return len(self.data)

    def isMultipart(self):
        return False

    def getSubPart(self, part):
        raise TypeError

    def open(self):
        return BytesIO(self.data)


@implementer(IMailboxIMAP)
class _Mailbox:
    def __init__(self, folder):
        self.folder = folder

    def messages(self):
        return sorted((_Message(path) for path in self.folder.glob("*.eml")), key=_Message.getUID)

    def fetch(self, wanted, uid):
        messages = list(enumerate(self.messages(), start=1))
        wanted.last = (messages[-1][1].getUID() if uid else len(messages)) if messages else 0
        return [(number, message) for number, message in messages if (message.getUID() if uid else number) in wanted]

    def getFlags(self):
        return ["\\Seen", "\\Deleted"]

    def getHierarchicalDelimiter(self):
        return "/"

    def getUIDValidity(self):
        return 7

    def getUIDNext(self):
        return 10**6

    def getMessageCount(self):
        return len(self.messages())

    def getRecentCount(self):
        return 0

    def getUnseenCount(self):
        return 0

    def isWriteable(self):
        return False

    def addListener(self, listener):
        pass

    def removeListener(self, listener):
        pass


class _Realm:
    def __init__(self, folder):
        self.account = imap4.MemoryAccount("ann")
        self.account.addMailbox("INBOX", _Mailbox(folder))

    def requestAvatar(self, name, mind, *interfaces):
        return imap4.IAccount, self.account, lambda: None


class _Server(Factory):
    def __init__(self, folder):
        known = checkers.InMemoryUsernamePasswordDatabaseDontUse(ann=b"right")
        self.portal = portal.Portal(_Realm(folder), [known])

    def buildProtocol(self, address):
        server = imap4.IMAP4Server()
        server.factory, server.portal = self, self.portal
        return server


if __name__ == "__main__":
    port = reactor.listenTCP(0, _Server(Path(sys.argv[1])), interface="127.0.0.1")
    print(port.getHost().port, flush=True)
    reactor.run()
