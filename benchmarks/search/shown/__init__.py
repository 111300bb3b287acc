"""The page of measurements: tables, curves and bars."""
