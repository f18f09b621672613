"""The version: below everything, since what is on disk says which one computed it."""

VERSION = "0.1.0"
