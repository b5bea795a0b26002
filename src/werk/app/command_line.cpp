#include "werk/app/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <list>
#include <sstream>

#include "werk/app/terminal.hpp"
#include "werk/app/version.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

// Values of the node options, where CLI11 puts them.
struct Collected {
  std::list<std::pair<std::string, std::vector<std::string>>> values;
  std::list<std::pair<std::string, bool>> switches;
};

void add_node_options(CLI::App& app, Collected& into) {
  for (const Option& option : options()) {
    const std::string flag(option.flag);
    std::string help(option.help);
    if (!option.variable.empty()) help += fmt::format(" [{}]", option.variable);
    if (option.shape == Shape::variable_only) continue;
    if (option.shape == Shape::flag) {
      auto& place = into.switches.emplace_back(flag, false);
      app.add_flag(flag, place.second, help);
      continue;
    }
    auto& place = into.values.emplace_back(flag, std::vector<std::string>());
    CLI::Option* added =
        app.add_option(flag, place.second, help)->type_name(std::string(option.takes));
    added->expected(1)->allow_extra_args(false);
    added->multi_option_policy(option.shape == Shape::repeated ? CLI::MultiOptionPolicy::TakeAll
                                                               : CLI::MultiOptionPolicy::TakeLast);
  }
}

std::vector<GivenFlag> given(const Collected& collected) {
  std::vector<GivenFlag> flags;
  for (const auto& [flag, values] : collected.values) {
    for (const std::string& value : values) flags.push_back({flag, value});
  }
  for (const auto& [flag, on] : collected.switches) {
    if (on) flags.push_back({flag, ""});
  }
  return flags;
}

std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  const auto add = [&](const CLI::App& one) {
    for (const CLI::Option* option : one.get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    for (const CLI::App* sub : one.get_subcommands(nullptr)) words.push_back(sub->get_name());
  };
  add(app);
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    add(*sub);
    for (const CLI::App* deeper : sub->get_subcommands(nullptr)) add(*deeper);
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::string variables_help() {
  std::string text = "\nEnvironment:\n";
  for (const Option& option : options()) {
    if (option.shape != Shape::variable_only) continue;
    text += fmt::format("  {:<34} {}\n", option.variable, option.help);
  }
  return text;
}

Parsed usage_error(std::string message) {
  Parsed parsed;
  parsed.text = fmt::format("werk: {} (`werk --help` shows what there is)\n", message);
  parsed.exit_status = kUsageStatus;
  return parsed;
}

Parsed unknown_word(const CLI::App& app, const std::string& word) {
  std::string message =
      fmt::format("unknown {} {}", word.starts_with('-') ? "option" : "word", printable(word));
  const auto near = near_names(word.substr(0, word.find('=')), known_words(app), 1);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near.front());
  return usage_error(std::move(message));
}

// What is wrong with how often a screen is renewed; empty: nothing.
std::string interval_fault(const std::string& text) {
  using namespace std::chrono_literals;
  const auto interval = parse_duration(text);
  if (!interval) return interval.error().message;
  return *interval < 100ms || *interval > 1h ? "takes 100ms to 1h" : "";
}

// The commands and where their words go.
struct Commands {
  CommandLine line;

  void add_engine(CLI::App& app) {
    CLI::App* engine = app.add_subcommand("engine", "engines that Werk installs for itself");
    engine->require_subcommand(1)->fallthrough();
    CLI::App* install = engine->add_subcommand("install", "build, fetch or register an engine");
    install->fallthrough();
    install->add_option("engine", line.subject, "llama-server, onnx-genai or transformers")
        ->required();
    install->add_option("--from", line.from,
                        "a source folder, an unpacked release or an executable");
    add_if_missing(*install);
    install->callback([this] { line.command = CommandId::engine_install; });
    CLI::App* list = engine->add_subcommand("list", "installed engines");
    list->fallthrough();
    list->callback([this] { line.command = CommandId::engine_list; });
  }
  void add_models(CLI::App& app) {
    add_pull(app);
    add_import(app);
    CLI::App* list = app.add_subcommand("list", "installed models");
    list->fallthrough();
    add_json(*list);
    list->callback([this] { line.command = CommandId::list; });
    CLI::App* inspect = app.add_subcommand("inspect", "everything known of one model, as JSON");
    inspect->fallthrough();
    inspect->add_option("id", line.subject, "its id or alias")->required();
    inspect->callback([this] { line.command = CommandId::inspect; });
    CLI::App* remove = app.add_subcommand("remove", "delete a model (linked files stay)");
    remove->fallthrough();
    remove->add_option("id", line.subject, "its id")->required();
    remove->callback([this] { line.command = CommandId::remove; });
  }
  void add_import(CLI::App& app) {
    CLI::App* command = app.add_subcommand("import", "take a model into the store");
    command->fallthrough();
    command->add_option("path", line.words,
                        "GGUF files (of a split model any part) or folders with one model each; "
                        "with --scan, names");
    command->add_option("--name", line.name, "its id (made from its name and quantization)");
    command->add_option("--alias", line.aliases, "a further name; may be given several times")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_option("--mmproj", line.mmproj, "its projector file, if it doesn't lie beside it");
    command->add_flag("--link", line.link, "use the files where they lie instead of copying them");
    command->add_flag("--all", line.all, "every model in the folder and below it");
    command->add_flag("--scan", line.scan,
                      "list the models of Ollama, LM Studio, the Hugging Face hub and llama.cpp on "
                      "this machine; with --link, register them where they lie");
    add_json(*command);
    command->callback([this] { line.command = CommandId::import_model; });
  }
  void add_pull(CLI::App& app) {
    CLI::App* pull = app.add_subcommand(
        "pull", "fetch a model into the store: smollm2, or one of the Hugging Face hub");
    pull->fallthrough();
    pull->add_option("model", line.subject,
                     "smollm2, hf:ORG/REPO or hf:ORG/REPO:Q4_K_M (of the hub Q4_K_M, else Q8_0, "
                     "else the only one)")
        ->required();
    pull->add_option("--file", line.file, "of the hub: a file's path, or the end of one");
    pull->add_option("--revision", line.revision, "of the hub: a branch, tag or commit (main)");
    pull->add_option("--name", line.name, "of the hub: its id (ORG/REPO:QUANTIZATION)");
    pull->add_option("--alias", line.aliases,
                     "of the hub: a further name; may be given several times")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_if_missing(*pull);
    pull->footer(
        "From the hub: what came stays when a pull ends early, and the same command goes on.\n"
        "Environment: HF_ENDPOINT, HF_TOKEN, HF_HOME, proxy variables, SSL_CERT_FILE.");
    pull->callback([this] { line.command = CommandId::pull; });
  }
  void add_launch(CLI::App& app) {
    CLI::App* launch = app.add_subcommand(
        "launch", "run a coding client (claude) on a model of this machine, for this run only");
    launch->fallthrough();
    launch->add_option("client", line.subject, "claude; what stands behind `--` goes to it")
        ->required();
    launch->add_flag_callback(
        "--anyway", [this] { line.anyway = Anyway::yes; },
        "even if the model has too small a context or no tools");
    launch->callback([this] { line.command = CommandId::launch; });
  }
  void add_config(CLI::App& app) {
    CLI::App* config =
        app.add_subcommand("config", "every setting in effect and where it came from");
    config->fallthrough();
    add_json(*config);
    config->callback([this, config] {
      if (config->get_subcommands().empty()) line.command = CommandId::config;
    });
    CLI::App* check = config->add_subcommand("check", "every fault of a settings file");
    check->fallthrough();
    check->add_option("file", line.subject, "the file (the one that would be read)");
    check->callback([this] { line.command = CommandId::config_check; });
    CLI::App* explain = app.add_subcommand(
        "explain", "what would serve a model and why, its launch line and its memory");
    explain->fallthrough();
    explain->add_option("model", line.subject, "its id or another name of it")->required();
    add_json(*explain);
    explain->callback([this] { line.command = CommandId::explain; });
  }
  void add_control(CLI::App& app) {
    CLI::App* ps = control_command(app, "ps", CommandId::ps, "what is loaded, and who waits");
    add_json(*ps);
    CLI::App* load = control_command(app, "load", CommandId::load, "load a model into the node");
    load->add_option("model", line.subject, "its id or alias")->required();
    CLI::App* unload = control_command(app, "unload", CommandId::unload,
                                       "let a model's calls end, and then its engine");
    unload->add_option("model", line.subject, "its id or alias")->required();
    unload->add_flag("--now", line.control.now, "end its calls with an error");
    CLI::App* pin =
        control_command(app, "pin", CommandId::pin, "keep a model loaded, whoever needs its place");
    pin->add_option("model", line.subject, "its id or alias")->required();
    CLI::App* unpin = control_command(app, "unpin", CommandId::unpin, "let it go like any other");
    unpin->add_option("model", line.subject, "its id or alias")->required();
    CLI::App* logs = control_command(app, "logs", CommandId::logs, "what engines print");
    logs->add_option("model", line.subject, "whose (all of them)");
    logs->add_flag("-f,--follow", line.control.follow, "go on with what comes");
    logs->add_option("-n,--lines", line.control.lines, "how many of the last lines (200)")
        ->type_name("N")
        ->check(CLI::Range(0, 100'000));
    add_top(app);
    control_command(app, "stop", CommandId::stop, "end the node as Ctrl-C does");
  }

  void add_top(CLI::App& app) {
    CLI::App* top = control_command(
        app, "top", CommandId::top,
        "what the node does now, on a screen that keeps itself up to date; h there shows its keys");
    CLI::Option* once = top->add_flag_callback(
        "--once", [this] { line.top.once = Once::yes; }, "print it once as text instead");
    add_json(*top)->needs(once);
    top->add_option_function<std::string>(
           "--interval",
           [this](const std::string& text) { line.top.interval = *parse_duration(text); },
           "how often the node is asked (1s)")
        ->type_name("DURATION")
        ->check(interval_fault);
  }
  void add_ask(CLI::App& app) {
    CLI::App* ask = app.add_subcommand(
        "run", "ask a model one question: the words, then what standard input holds");
    ask->fallthrough();
    ask->add_option("words", line.words,
                    "the model (it may be left out if there is only one), then the prompt in "
                    "quotes; `-` reads it from standard input");
    add_ask_options(*ask);
    add_json(*ask);
    ask->callback([this] { line.command = CommandId::ask; });
    CLI::App* chat =
        app.add_subcommand("chat", "talk with a model; /help there shows what it takes");
    chat->fallthrough();
    chat->add_option("model", line.subject, "it may be left out if there is only one");
    add_ask_options(*chat);
    chat->callback([this] { line.command = CommandId::chat; });
  }
  void add_service(CLI::App& app) {
    CLI::App* service =
        app.add_subcommand("service", "the node as a service of yours that systemd runs");
    service->require_subcommand(1)->fallthrough();
    CLI::App* install = service->add_subcommand(
        "install", "write the unit; the options given here are those of the service");
    install->fallthrough();
    install->add_flag_callback(
        "--now", [this] { line.now = Now::yes; }, "start it at once, with these options");
    install->callback([this] { line.command = CommandId::service_install; });
    CLI::App* uninstall = service->add_subcommand("uninstall", "stop it and remove the unit");
    uninstall->fallthrough();
    uninstall->callback([this] { line.command = CommandId::service_uninstall; });
  }
  void add_doctor(CLI::App& app) {
    CLI::App* doctor = app.add_subcommand(
        "doctor", "what this machine has and what it lacks; status 0 if something can be served");
    doctor->fallthrough();
    add_json(*doctor);
    doctor->callback([this] { line.command = CommandId::doctor; });
  }
  void add_bench(CLI::App& app) {
    CLI::App* bench = app.add_subcommand(
        "bench", "measure a node, or any server that speaks the OpenAI or the Anthropic dialect");
    bench->fallthrough();
    add_what_is_asked(*bench);
    add_how_it_is_asked(*bench);
    add_url(*bench);
    bench
        ->add_option("--against", line.bench.against,
                     "a second server, or one for each --model: both sides are measured in turn,\n"
                     "and their ratios told")
        ->type_name("URL...")
        ->delimiter(',');
    bench->add_option("--output", line.bench.output, "where the results go, as JSON")
        ->type_name("FILE");
    add_json(*bench);
    bench->footer(
        "Standard output has a table, or with --json the results. Status 0 means that every\n"
        "request succeeded. Environment: WERK_API_KEY, sent to every server that is named.");
    bench->callback([this, bench] {
      if (bench->get_subcommands().empty()) line.command = CommandId::bench;
    });
    CLI::App* compare =
        bench->add_subcommand("compare", "two files of results, level by level, with their spread");
    compare->add_option("files", line.words, "what --output wrote: A, then B")
        ->required()
        ->expected(2);
    compare->callback([this] { line.command = CommandId::bench_compare; });
  }

 private:
  void add_what_is_asked(CLI::App& bench) {
    BenchOptions& options = line.bench;
    bench
        .add_option("--model", options.models,
                    "what is measured; several take turns, request by request")
        ->type_name("NAME")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    bench.add_option("--max-tokens", options.max_tokens, "where an answer is cut (128)")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 30));
    bench.add_flag_callback(
        "--ignore-eos", [&options] { options.end_of_sequence = bench::EndOfSequence::ignored; },
        "answers of full length, where the server knows how (llama-server, vLLM)");
    bench
        .add_option("--prompts", options.prompts,
                    "a prompt a line: text, or a JSON object with `messages`")
        ->type_name("FILE");
    bench
        .add_option("--prompt-tokens", options.prompt_tokens,
                    "make prompts of about so many tokens, each another")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 24));
    bench
        .add_option("--shared-prefix-tokens", options.shared_prefix_tokens,
                    "and before each of them so many that all share")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 24));
    bench.add_option("--seed", options.seed, "of made prompts, arrivals and sampling (1)")
        ->type_name("N");
    bench
        .add_option_function<std::string>(
            "--dialect",
            [&options](const std::string& name) {
              options.dialect =
                  name == "openai" ? bench::Dialect::openai : bench::Dialect::anthropic;
            },
            "openai (the default) or anthropic")
        ->type_name("NAME")
        ->check(CLI::IsMember({"openai", "anthropic"}));
  }
  void add_how_it_is_asked(CLI::App& bench) {
    BenchOptions& options = line.bench;
    bench.add_option("--requests", options.requests, "of each run (16)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
    bench
        .add_option("--concurrency", options.concurrency,
                    "callers at once, a run for each number: 1 2 4 8 or 1,2,4,8 (1)")
        ->type_name("N...")
        ->delimiter(',')
        ->check(CLI::Range(1, 10'000));
    bench
        .add_option("--rate", options.rates,
                    "requests a second instead, by chance and whoever still waits")
        ->type_name("R...")
        ->delimiter(',')
        ->check(CLI::Range(0.001, 100'000.0));
    bench.add_flag_callback(
        "--warmup", [&options] { options.warmup = Warmup::yes; },
        "one request to each model beforehand, which isn't counted");
    bench
        .add_option("--repeat", options.repeat,
                    "measure each level so often (1; with --against 7 pairs)")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
  }
  CLI::App* control_command(CLI::App& app, const std::string& name, CommandId id,
                            const std::string& help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->fallthrough();
    add_url(*command);
    command->callback([this, id] { line.command = id; });
    return command;
  }
  void add_url(CLI::App& app) {
    app.add_option("--url", line.url, "a node elsewhere, http://HOST:PORT; WERK_API_KEY is sent")
        ->type_name("URL");
  }
  void add_ask_options(CLI::App& app) {
    add_url(app);
    app.add_option("--system", line.ask.system, "instructions before the conversation")
        ->type_name("TEXT");
    app.add_option("--max-tokens", line.ask.max_tokens, "where an answer is cut")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 30));
    app.add_option("--temperature", line.ask.temperature, "0: always the likeliest word")
        ->type_name("X")
        ->check(CLI::Range(0.0, 100.0));
    app.add_flag_callback(
        "--reasoning", [this] { line.ask.reasoning = Reasoning::shown; },
        "show what a model thinks (on standard error) also where that is no terminal");
    app.add_flag_callback(
        "--verbose", [this] { line.ask.verbose = Verbose::yes; },
        "tokens and times behind the answer, on standard error");
  }
  void add_if_missing(CLI::App& app) {
    app.add_flag_callback(
        "--if-missing", [this] { line.if_missing = IfMissing::yes; }, "do nothing if one is there");
  }
  CLI::Option* add_json(CLI::App& app) {
    return app.add_flag_callback(
        "--json", [this] { line.json = Json::yes; }, "for programs");
  }
};

// Words behind `--` are nobody's options: CLI11 never sees them.
int own_words(int argc, const char* const* argv, std::vector<std::string>& behind) {
  const auto end = argv + argc;
  const auto mark =
      std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  if (mark == end) return argc;
  behind.assign(mark + 1, end);
  return static_cast<int>(mark - argv);
}

bool takes_words(CommandId command) {
  return command == CommandId::launch || command == CommandId::ask ||
         command == CommandId::import_model;
}

}  // namespace

Parsed parse_command_line(int argc, const char* const* argv) {
  CLI::App app(
      "Werk puts every model of this machine behind one address that speaks the OpenAI and the "
      "Anthropic dialect.",
      "werk");
  Collected collected;
  Commands commands;
  add_node_options(app, collected);
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(variables_help());
  CLI::App* serve = app.add_subcommand("serve", "run the node");
  serve->fallthrough();
  serve->callback([&commands] { commands.line.command = CommandId::serve; });
  commands.add_models(app);
  commands.add_engine(app);
  commands.add_launch(app);
  commands.add_config(app);
  commands.add_ask(app);
  commands.add_service(app);
  commands.add_doctor(app);
  commands.add_control(app);
  commands.add_bench(app);
  std::vector<std::string> behind;
  argc = own_words(argc, argv, behind);
  try {
    app.parse(argc, const_cast<char**>(argv));
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> extras = app.remaining(true);
    return unknown_word(app, extras.empty() ? std::string("word") : extras.front());
  } catch (const CLI::ParseError& error) {
    // A mistyped command is left over, and a command seems to be missing.
    const std::vector<std::string> extras = app.remaining(true);
    const bool no_command =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
    if (no_command && !extras.empty()) return unknown_word(app, extras.front());
    std::ostringstream out;
    std::ostringstream err;
    const int status = app.exit(error, out, err);
    if (status != 0) return usage_error(error.what());
    Parsed parsed;
    parsed.text = out.str();
    return parsed;
  }
  if (!behind.empty() && !takes_words(commands.line.command))
    return unknown_word(app, behind.front());
  std::ranges::move(behind, std::back_inserter(commands.line.words));
  Parsed parsed;
  commands.line.flags = given(collected);
  parsed.command = std::move(commands.line);
  return parsed;
}

}  // namespace werk::app
