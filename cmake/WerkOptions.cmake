# Compiler settings that every target shares, and the libraries found once.
find_package(Threads REQUIRED)
set(Boost_NO_WARN_NEW_VERSIONS ON)
find_package(Boost 1.81 EXACT REQUIRED COMPONENTS json)
find_package(OpenSSL REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)

find_program(WERK_CCACHE ccache)
if(WERK_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${WERK_CCACHE}")
endif()

add_library(werk_options INTERFACE)
target_compile_options(werk_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                              -Wold-style-cast -Wimplicit-fallthrough -Werror)
# Where g++ 12 inlines how Asio allocates a coroutine's frame, it takes the pair of new and delete for a mismatched one.
target_compile_options(werk_options INTERFACE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-mismatched-new-delete>)
target_compile_definitions(werk_options INTERFACE BOOST_ASIO_NO_DEPRECATED)
target_include_directories(werk_options INTERFACE "${PROJECT_SOURCE_DIR}/src")

# address, thread, fuzzer or empty; see CMakePresets.json.
set(WERK_SANITIZE "" CACHE STRING "Sanitizers to build with: address, thread, fuzzer or none")
if(WERK_SANITIZE STREQUAL "address")
  # g++ 12 takes Asio's coroutine frames for mismatched new and delete under the sanitizer.
  target_compile_options(werk_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer -Wno-mismatched-new-delete)
  target_link_options(werk_options INTERFACE -fsanitize=address,undefined)
elseif(WERK_SANITIZE STREQUAL "thread")
  # g++ 12's thread sanitizer does not understand the fences Asio uses.
  target_compile_options(werk_options INTERFACE -fsanitize=thread -Wno-tsan)
  target_compile_definitions(werk_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  target_link_options(werk_options INTERFACE -fsanitize=thread)
elseif(WERK_SANITIZE STREQUAL "fuzzer")
  target_compile_options(werk_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
                                                -fno-sanitize-recover=all)
  target_link_options(werk_options INTERFACE -fsanitize=address,undefined)
endif()
