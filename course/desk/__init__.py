"""A learner's desk: the copies of the labs, JupyterLab on them, and the doctor who looks at the installation."""
