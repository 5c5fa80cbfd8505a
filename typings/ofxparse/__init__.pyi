"""What we use of ofxparse is in its module of the same name."""
