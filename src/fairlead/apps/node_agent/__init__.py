"""The agent of one node: it gives containers the cards that their pods were placed on."""
