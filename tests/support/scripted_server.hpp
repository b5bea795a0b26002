// ScriptedServer: an HTTP server inside the test's own loop that says exactly what the test
// scripted, well-formed or not, and remembers exactly what it was sent. Replies are taken in
// order, one per request on whatever connection it comes; pauses are gates that the test opens.
// Owned by the test, which must have awaited close() before it goes. Loop thread only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "werk/async/awaitable.hpp"
#include "werk/async/event.hpp"
#include "werk/async/task_group.hpp"

namespace werk::test {

// What the server does when a request has arrived, step by step. Afterwards the connection waits
// for the next request, unless a step ended it.
class Reply {
 public:
  struct Send {
    std::string bytes;
  };
  struct Gate {
    async::Event* event;
  };
  struct Signal {
    async::Event* event;
  };
  enum class End : std::uint8_t {
    close,
    reset,
    hang,  // neither answers nor closes until the client does
  };
  using Step = std::variant<Send, Gate, Signal, End>;

  Reply& send(std::string bytes);
  // The same bytes as one chunk of a chunked body.
  Reply& chunk(std::string_view bytes);
  Reply& last_chunk();
  // Goes on once the event is set, or ends with the connection.
  Reply& wait_for(async::Event& event);
  // Tells the test that everything before was sent.
  Reply& tell(async::Event& event);
  Reply& end(End how);

  // A whole answer with its length.
  static Reply whole(int status, std::string_view content_type, std::string_view body);
  // The head of a chunked answer; go on with chunk() and last_chunk().
  static Reply stream(std::string_view content_type);

  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

struct ReceivedRequest {
  std::size_t connection = 0;  // counted from 0 in the order they were accepted
  std::string line;            // "POST /x HTTP/1.1"
  std::string head;            // with the line, up to and with the empty line
  std::string body;            // as it was sent; chunk frames included
};

class ScriptedServer {
 public:
  explicit ScriptedServer(async::Executor executor);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  // One of these, once. Loopback, a port chosen by the system.
  std::uint16_t listen_tcp();
  void listen_unix(const std::string& path);

  void reply(Reply next);
  // For every request that finds no reply queued; without it such a request is answered 500.
  void reply_always(Reply standing);
  // On the connection that is in the middle of a request: stops reading and replies at once.
  void answer_now(Reply reply);
  // The next accepted connections are closed, unread, this many times.
  void refuse_next(std::size_t connections) { refuse_next_ = connections; }

  // Every byte of every connection, in the order they came.
  const std::string& bytes_received() const { return bytes_; }
  const std::vector<ReceivedRequest>& requests() const { return requests_; }
  std::size_t connections_accepted() const { return accepted_; }
  std::size_t connections_open() const;

  // Set each time a whole request is in, and each time a client closed its connection; the test
  // resets them.
  async::Event& request_arrived() { return request_arrived_; }
  async::Event& connection_closed() { return connection_closed_; }

  // Closes the server's side of every connection that waits for a request.
  void drop_idle();
  async::awaitable<void> close();

 private:
  struct Connection;
  struct Acceptor;

  void accept_all();
  async::awaitable<void> read_from(std::shared_ptr<Connection> connection);
  async::awaitable<void> answer(std::shared_ptr<Connection> connection);
  async::awaitable<bool> perform(Connection& connection, const Reply& reply);
  void collect(Connection& connection);

  async::Executor executor_;
  async::Event request_arrived_;
  async::Event connection_closed_;
  async::TaskGroup tasks_;
  std::shared_ptr<Acceptor> acceptor_;
  std::list<std::shared_ptr<Connection>> connections_;
  std::list<Reply> replies_;
  std::unique_ptr<Reply> standing_;
  std::string bytes_;
  std::vector<ReceivedRequest> requests_;
  std::size_t accepted_ = 0;
  std::size_t refuse_next_ = 0;
};

}  // namespace werk::test
