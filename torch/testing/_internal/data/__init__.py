"""Files that tests read: two modules of the same name whose sources differ."""
