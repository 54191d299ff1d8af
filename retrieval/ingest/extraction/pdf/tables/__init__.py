"""Tables on printed pages, found by their rules or by the places of their cells."""
