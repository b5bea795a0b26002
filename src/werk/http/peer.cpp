#include "werk/http/peer.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace werk::http {

namespace {

// An address as the kernel's tables have it: IPv4 ones in the first word only.
struct Place {
  std::array<std::uint32_t, 4> words{};
  std::uint16_t port_network = 0;
  bool operator==(const Place&) const = default;
};

struct Pair {
  int family = AF_INET;
  Place local;
  Place remote;
};

Place place_of(const sockaddr_storage& address) {
  Place place;
  if (address.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &address, sizeof four);
    place.words[0] = four.sin_addr.s_addr;
    place.port_network = four.sin_port;
  } else {
    sockaddr_in6 six{};
    std::memcpy(&six, &address, sizeof six);
    std::memcpy(place.words.data(), &six.sin6_addr, sizeof six.sin6_addr);
    place.port_network = six.sin6_port;
  }
  return place;
}

bool is_mapped_four(const Place& place) {
  return place.words[0] == 0 && place.words[1] == 0 && place.words[2] == htonl(0xFFFF);
}

void unmap(Place& place) { place.words = {place.words[3], 0, 0, 0}; }

// The peer's own view of the connection: its local end is our remote one.
std::optional<Pair> peers_view(int descriptor) {
  sockaddr_storage own{};
  sockaddr_storage other{};
  socklen_t own_size = sizeof own;
  socklen_t other_size = sizeof other;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0)
    return std::nullopt;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&other), &other_size) != 0)
    return std::nullopt;
  Pair pair{own.ss_family, place_of(other), place_of(own)};
  if (pair.family == AF_INET6 && is_mapped_four(pair.local) && is_mapped_four(pair.remote)) {
    pair.family = AF_INET;
    unmap(pair.local);
    unmap(pair.remote);
  }
  return pair;
}

struct Closer {
  explicit Closer(int fd) : descriptor(fd) {}
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;
  ~Closer() {
    if (descriptor >= 0) ::close(descriptor);
  }
  int descriptor;
};

struct DiagQuestion {
  nlmsghdr header{};
  inet_diag_req_v2 body{};
};

enum class Found : std::uint8_t { held, orphaned, absent, unknown };

// One exact question to the kernel. Absent is also what a kernel without the diagnosis module says.
Found ask_sock_diag(const Pair& pair) {
  const Closer netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (netlink.descriptor < 0) return Found::unknown;
  DiagQuestion question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<std::uint8_t>(pair.family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0U;
  question.body.id.idiag_sport = pair.local.port_network;
  question.body.id.idiag_dport = pair.remote.port_network;
  std::memcpy(question.body.id.idiag_src, pair.local.words.data(), sizeof pair.local.words);
  std::memcpy(question.body.id.idiag_dst, pair.remote.words.data(), sizeof pair.remote.words);
  question.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(netlink.descriptor, &question, sizeof question, 0) != sizeof question)
    return Found::unknown;
  std::array<char, 4096> answer{};
  const ssize_t bytes = ::recv(netlink.descriptor, answer.data(), answer.size(), MSG_DONTWAIT);
  nlmsghdr header{};
  if (bytes < static_cast<ssize_t>(sizeof header)) return Found::unknown;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error{};
    std::memcpy(&error, answer.data() + NLMSG_HDRLEN, sizeof error);
    return error.error == -ENOENT ? Found::absent : Found::unknown;
  }
  inet_diag_msg found{};
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len < NLMSG_LENGTH(sizeof found)) {
    return Found::unknown;
  }
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  if (found.id.idiag_dport != pair.remote.port_network)
    return Found::absent;  // a listener on the port
  return found.idiag_inode != 0 ? Found::held : Found::orphaned;
}

// One row of /proc/net/tcp or tcp6: addresses in the kernel's byte order, the port as a number.
struct Row {
  Place local;
  Place remote;
  unsigned state = 0;
  std::uint64_t inode = 0;
};

std::optional<Place> read_place(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  Place place;
  for (std::size_t word = 0; word < colon / 8; ++word) {
    std::from_chars(text.data() + 8 * word, text.data() + 8 * word + 8, place.words[word], 16);
  }
  std::uint16_t port = 0;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), port, 16);
  place.port_network = htons(port);
  if (colon == 32 && is_mapped_four(place)) unmap(place);
  return place;
}

std::optional<Row> read_row(const std::string& line) {
  std::istringstream words(line);
  std::string number;
  std::string local;
  std::string remote;
  std::string state;
  std::string skipped;
  Row row;
  words >> number >> local >> remote >> state;
  for (int field = 0; field < 5; ++field) words >> skipped;
  words >> row.inode;
  const auto local_place = read_place(local);
  const auto remote_place = read_place(remote);
  if (!words || !local_place || !remote_place) return std::nullopt;
  row.local = *local_place;
  row.remote = *remote_place;
  std::from_chars(state.data(), state.data() + state.size(), row.state, 16);
  return row;
}

template <class Visit>
void for_each_row(Visit visit) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream rows(table);
    std::string line;
    std::getline(rows, line);
    while (std::getline(rows, line)) {
      const auto row = read_row(line);
      if (row) visit(*row);
    }
  }
}

Found ask_tables(const Pair& pair) {
  Found found = Found::absent;
  for_each_row([&](const Row& row) {
    if (row.local == pair.local && row.remote == pair.remote) {
      found = row.inode != 0 ? Found::held : Found::orphaned;
    }
  });
  return found;
}

Peer look_at_tcp_peer(int descriptor) {
  const auto view = peers_view(descriptor);
  if (!view) return Peer::gone;
  Found found = ask_sock_diag(*view);
  if (found == Found::absent) {
    // Only a kernel that knows our own end is believed.
    const Found own = ask_sock_diag(Pair{view->family, view->remote, view->local});
    if (own != Found::held) found = Found::unknown;
  }
  if (found == Found::unknown) found = ask_tables(*view);
  return found == Found::held ? Peer::present : Peer::gone;
}

// The process that has the socket open, among those we may look at.
std::string owner_of(std::uint64_t inode) {
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  std::error_code ignored;
  namespace fs = std::filesystem;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = process.path().filename().string();
    if (pid.empty() || pid.front() < '0' || pid.front() > '9') continue;
    std::error_code denied;
    fs::directory_iterator open_files(process.path() / "fd", denied);
    for (; !denied && open_files != fs::directory_iterator(); open_files.increment(denied)) {
      std::error_code vanished;
      if (fs::read_symlink(open_files->path(), vanished) != wanted) continue;
      std::string program;
      std::getline(std::ifstream(process.path() / "comm"), program);
      return "process " + pid + " (" + program + ")";
    }
  }
  return {};
}

}  // namespace

Peer look_at_peer(int descriptor, int family) {
  if (family != AF_UNIX) return look_at_tcp_peer(descriptor);
  // A Unix socket tells them apart by itself: it hangs up only when the peer has closed.
  pollfd entry{descriptor, POLLIN, 0};
  const int ready = ::poll(&entry, 1, 0);
  return ready < 0 || (entry.revents & (POLLHUP | POLLERR)) != 0 ? Peer::gone : Peer::present;
}

std::string port_holder(std::uint16_t port) {
  constexpr unsigned kListening = 10;
  std::uint64_t inode = 0;
  for_each_row([&](const Row& row) {
    if (row.state == kListening && row.local.port_network == htons(port)) inode = row.inode;
  });
  return inode == 0 ? std::string() : owner_of(inode);
}

}  // namespace werk::http
