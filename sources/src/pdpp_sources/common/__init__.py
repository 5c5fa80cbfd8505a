"""What several sources share: exports read in place, text, times, declarations."""
