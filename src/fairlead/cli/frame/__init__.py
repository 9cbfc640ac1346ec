"""What all commands share: parser, verbs, messages, streams, completion."""
