//! Examples of emq: each is a program of its own, in the folder above; `README.md` lists them.
