"""The words of the collections that are searched, and those that are near to them."""
