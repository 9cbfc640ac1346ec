"""The Quota board and the page of its tree, from one snapshot."""
