"""Surgery on the finished graph: cuts it, splits it, folds preprocessing into it, outlines parts of it."""
