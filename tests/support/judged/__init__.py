"""An app that judges answers with the scores of a file; a web server with `tests.support.judged.settings` has it."""
