"""The suites that come with taoloop."""
