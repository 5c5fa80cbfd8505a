-- How long a tool result may be for the app of a grant or package.
ALTER TABLE reading_limits ADD COLUMN result_chars {integer};
