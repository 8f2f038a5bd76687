//! Examples of emq; each is a program of its own in this folder.
