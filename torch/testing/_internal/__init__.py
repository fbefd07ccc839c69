"""Helpers of the test suites: op records, test case classes, parametrisation."""
