# `cmake --install` (and `make install PREFIX=...`): the program, the workers it starts, its documents and its licence.
include(GNUInstallDirs)
install(TARGETS werk RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY workers DESTINATION "${CMAKE_INSTALL_DATADIR}/werk" USE_SOURCE_PERMISSIONS
        PATTERN "__pycache__" EXCLUDE PATTERN "lock" EXCLUDE)
