"""What the tests of sibling entries have in common; each test file's class says which sibling it is."""
