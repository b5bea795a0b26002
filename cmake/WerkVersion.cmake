# Run at every build (cmake -P): writes version.cpp when the commit has changed since.
execute_process(COMMAND git -C "${SOURCE_DIR}" rev-parse --short=10 HEAD
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
execute_process(COMMAND git -C "${SOURCE_DIR}" status --porcelain --untracked-files=no
                OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(changes)
  string(APPEND commit ", changed")
endif()
set(text "#include \"werk/app/version.hpp\"

namespace werk::app {

std::string version() { return \"${VERSION}\"; }
std::string version_text() { return \"werk ${VERSION} (commit ${commit})\"; }

}  // namespace werk::app
")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUTPUT}" "${text}")
endif()
