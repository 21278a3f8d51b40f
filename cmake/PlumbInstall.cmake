# nothing to install yet
