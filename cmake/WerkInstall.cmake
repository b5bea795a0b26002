# `cmake --install` (and `make install PREFIX=...`): the program, its documents and its licence; nothing else.
include(GNUInstallDirs)
install(TARGETS werk RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
