// What Werk knows of a model hub that speaks Hugging Face's protocol, as pure text work: names that
// a person types, addresses, the answers of its API, and which of a repository's GGUF files make
// the model that is wanted. No network, no disk; any thread. Facts of the protocol: the hub's API
// documents (/api/models/REPO/revision/REV, /api/models/REPO/tree/REV, /REPO/resolve/REV/FILE).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::app {

// "hf:ORG/REPO" or "hf:ORG/REPO:Q4_K_M".
struct HubName {
  std::string repository;    // "ORG/REPO"
  std::string quantization;  // or empty
};
bool is_hub_name(std::string_view subject);
// `invalid_request` with the form that is right.
Result<HubName> parse_hub_name(std::string_view subject);
// A branch, a tag or a commit; `invalid_request` when it can't be one.
Status check_revision(std::string_view revision);

// Where the hub is and who asks, from the variables that its own tools read.
struct HubAccess {
  std::string endpoint;  // without a slash at its end
  std::string token;     // or empty
  std::string ca_file;   // empty: the system's
  std::string ca_folder;
};
using HubVariable = std::function<std::optional<std::string>(std::string_view name)>;
// The content of a file; none if it can't be read.
using HubFileReader = std::function<std::optional<std::string>(const std::string& path)>;
// HF_ENDPOINT; HF_TOKEN, else the file HF_TOKEN_PATH, $HF_HOME/token, or `huggingface/token` in the
// cache folder; CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR. `invalid_request` for an endpoint that
// is no plain http address or a token that can't stand in a header.
Result<HubAccess> hub_access(const HubVariable& variable, const HubFileReader& read_file);

std::string revision_url(const HubAccess& hub, std::string_view repository,
                         std::string_view revision);
std::string tree_url(const HubAccess& hub, std::string_view repository, std::string_view commit);
std::string file_url(const HubAccess& hub, std::string_view repository, std::string_view commit,
                     std::string_view path);

// Repositories with GGUF files: those of an owner, or those whose name holds a text.
std::string owner_url(const HubAccess& hub, std::string_view owner);
std::string search_url(const HubAccess& hub, std::string_view text);
// The names in such an answer; none where it is something else.
std::vector<std::string> parse_repositories(std::string_view json);

struct HubRevision {
  std::string commit;   // 40 hexadecimal digits, so that all that follows is of one state
  std::string licence;  // or empty
};
Result<HubRevision> parse_revision(std::string_view json);

struct HubFile {
  std::string path;  // in the repository
  std::uint64_t size_bytes = 0;
  std::string sha256;  // empty where the hub lists none (small files outside of its large storage)
};
// Appends the files of one page of a listing.
Status parse_tree(std::string_view json, std::vector<HubFile>& files);
// Of a Link header the next page, as an address at `hub` whatever host it names; empty if none.
std::string next_page(const HubAccess& hub, std::string_view link_header);

// What makes a model: weights in order (of a split set all), and the projector that comes with it.
struct HubChoice {
  std::vector<HubFile> weights;
  std::optional<HubFile> projector;
  std::string quantization;      // as far as the names tell
  bool only_of_its_kind = true;  // no other model of the repository has this quantization
};
// By `file` (a path in the repository, or the end of one), else by quantization, else Q4_K_M, else
// Q8_0, else the only model there is. `not_found` or `invalid_request` with what there is and what
// to type.
Result<HubChoice> choose_files(const std::vector<HubFile>& files, const HubName& name,
                               std::string_view file);
std::uint64_t total_bytes(const HubChoice& choice);

// "Q4_K_M" of "x/model-q4_k_m-00001-of-00002.gguf" or "Q4_K_M/model.gguf"; empty if none is told.
std::string quantization_of(std::string_view path);
// "ORG/REPO:Q4_K_M", which is what is typed behind `hf:`; with the file's name instead of the
// quantization where that isn't enough.
std::string hub_model_id(std::string_view repository, const HubChoice& choice);
// Of ASCII letters, as quantizations are written.
std::string upper_case(std::string_view text);
// What a person or a hub wrote, fit for one line of a message.
std::string one_line(std::string_view text);

// What the file is called beside the others while it is fetched, and in the store.
std::string local_name(const HubFile& file);

}  // namespace werk::app
