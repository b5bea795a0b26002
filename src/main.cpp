#include "werk/app/commands/run.hpp"

int main(int argc, char** argv) { return werk::app::run(argc, argv); }
