"""The main commands under settings of other machines: whether each ends as it does in the first, cell by cell."""
