"""digestd watches topic listings and tells each follower once what is new."""

__version__ = "0.1.0"
