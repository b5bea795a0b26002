// AskedNode: the node that `werk run` and `werk chat` ask: the one of --url, else the one that
// serves the home, else one of the command's own, on loopback and a free port, which is gone when
// the command is. So no model is ever loaded twice. Owned by the command; blocking, main thread.
#pragma once

#include <filesystem>
#include <memory>

#include "werk/app/command_line.hpp"
#include "werk/app/node_client.hpp"
#include "werk/app/own_node.hpp"

namespace werk::app {

class AskedNode {
 public:
  AskedNode(const CommandLine& line, const Settings& settings, std::filesystem::path home)
      : line_(line), settings_(settings), home_(std::move(home)) {}
  AskedNode(const AskedNode&) = delete;
  AskedNode& operator=(const AskedNode&) = delete;
  ~AskedNode() { end(); }

  // The model that will be asked, which a node of the command's own begins to load at once.
  void set_model(std::string name) { model_ = std::move(name); }

  // Its address, now: another one than before if that has gone. Two commands that come at once
  // share the node of the first. `cancelled` after a signal.
  Result<NodeAddress> reach();
  // Whether the failure means that the node has gone or is going, so that reach() finds another.
  bool has_gone(const Error& error) const;
  // The model that is meant where none is named: the settings' default, else the only one that is
  // installed here; else empty, which leaves it to the node.
  std::string unnamed_model() const;
  // What to say when the node can't tell either.
  std::string way_to_name() const;
  bool is_own() const { return own_ != nullptr; }
  // Ends the command's own node, if it has one.
  void end();

 private:
  Result<NodeAddress> start_own();
  Status check_home() const;

  const CommandLine& line_;
  const Settings& settings_;
  std::filesystem::path home_;
  std::string model_;
  bool told_ = false;  // which options have no effect
  std::unique_ptr<OwnNode> own_;
};

}  // namespace werk::app
