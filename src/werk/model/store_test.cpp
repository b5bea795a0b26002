#include "werk/model/store.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_gguf.hpp"
#include "werk/base/digest.hpp"
#include "werk/model/already_installed.hpp"
#include "werk/model/model_id.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// File `number` of a tiny model split into `count`: all have tensors of their own, the first the
// description.
std::string split_file(std::uint16_t number, std::uint16_t count) {
  test::GgufBuilder file;
  file.add_string("general.architecture", "llama");
  file.add_u16("split.no", static_cast<std::uint16_t>(number - 1));
  file.add_u16("split.count", count);
  file.add_u32("llama.context_length", 512);
  file.add_tensor("t" + std::to_string(number), {32}, [](std::uint64_t) { return 1.0F; });
  return file.bytes();
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override { write(folder_ / "from/tiny.gguf", test::tiny_gguf()); }

  static StoreOptions options() {
    StoreOptions options;
    options.now = [] { return std::chrono::system_clock::from_time_t(1795992242); };
    return options;
  }

  ImportRequest request(std::string id) const {
    ImportRequest request;
    request.path = folder_ / "from/tiny.gguf";
    request.id = std::move(id);
    return request;
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    const auto listing = store_.list();
    EXPECT_TRUE(listing && listing->broken.empty());
    for (const InstalledModel& model : listing->models) ids.push_back(model.manifest.id);
    return ids;
  }

  std::size_t entries_of_store() const {
    const fs::directory_iterator entries(folder_ / "home/models");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }

  test::TemporaryFolder folder_;
  Store store_{folder_ / "home", options()};
};

TEST_F(StoreTest, ListsNothingWhereNoHomeIs) {
  const auto listing = store_.list();
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->models.empty() && listing->broken.empty());
  EXPECT_EQ(store_.find("x").error().code, ErrorCode::model_not_found);
  EXPECT_EQ(store_.remove("x").error().code, ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(folder_ / "home")) << "reading creates nothing";
}

TEST_F(StoreTest, ImportsACopyAndFindsIt) {
  ImportRequest wanted = request("org/tiny:F32");
  wanted.aliases = {"tiny"};
  wanted.source = "a test";
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  const auto imported = store_.import_file(wanted, [&](const ImportProgress& progress) {
    EXPECT_GE(progress.bytes_done, done);
    EXPECT_EQ(progress.file, "tiny.gguf");
    done = progress.bytes_done;
    total = progress.bytes_total;
    return GoOn::yes;
  });
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, test::tiny_gguf().size());

  for (const char* name : {"org/tiny:F32", "tiny"}) {
    const auto found = store_.find(name);
    ASSERT_TRUE(found) << found.error().message;
    const Manifest& manifest = found->manifest;
    EXPECT_EQ(write_manifest(manifest), write_manifest(imported->manifest));
    EXPECT_EQ(manifest.id, "org/tiny:F32");
    EXPECT_EQ(manifest.architecture, "llama");
    EXPECT_EQ(manifest.imported_at, "2026-11-29T22:44:02Z");
    EXPECT_EQ(manifest.licence, "apache-2.0");
    EXPECT_TRUE(manifest.capabilities.chat && manifest.capabilities.completion);
    EXPECT_FALSE(manifest.capabilities.vision);
    EXPECT_TRUE(manifest.chat_template.tools && manifest.chat_template.system);
    EXPECT_EQ(content(found->weights_path()), test::tiny_gguf());
    EXPECT_EQ(manifest.files[0].sha256, sha256_hex(test::tiny_gguf()));
    EXPECT_FALSE(found->projector_path());
    EXPECT_TRUE(verify(*found));
  }
  EXPECT_EQ(entries_of_store(), 2u) << "the model and the lock, nothing else";
}

TEST_F(StoreTest, TakesIdsOfEveryKind) {
  const std::vector<std::string> wanted = {"a",
                                           "a/b",
                                           "a:b",
                                           "a b",
                                           "a%2Fb",
                                           "\xE6\xA8\xA1",
                                           ".x",
                                           std::string(255, '/' + 1),
                                           std::string(255, ':')};
  for (const std::string& id : wanted) {
    const auto imported = store_.import_file(request(id));
    ASSERT_TRUE(imported) << imported.error().message;
  }
  std::vector<std::string> sorted = wanted;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(ids(), sorted);
  for (const std::string& id : wanted) {
    ASSERT_TRUE(store_.find(id)) << id;
    ASSERT_TRUE(store_.remove(id)) << id;
  }
  EXPECT_TRUE(ids().empty());
}

TEST_F(StoreTest, NeverOverwritesAName) {
  ImportRequest first = request("a");
  first.aliases = {"alias"};
  ASSERT_TRUE(store_.import_file(first));
  for (const char* name : {"a", "alias"}) {
    EXPECT_EQ(store_.import_file(request(name)).error().code, ErrorCode::conflict) << name;
    ImportRequest other = request("other");
    other.aliases = {"fine", name};
    EXPECT_EQ(store_.import_file(other).error().code, ErrorCode::conflict) << name;
  }
  ImportRequest twice = request("twice");
  twice.aliases = {"twice"};
  EXPECT_EQ(store_.import_file(twice).error().code, ErrorCode::invalid_request);
  EXPECT_EQ(store_.import_file(request("a/../b")).error().code, ErrorCode::invalid_request);
  EXPECT_EQ(ids(), std::vector<std::string>{"a"});
}

TEST_F(StoreTest, TakesTheIdFromTheFileWhereNoneIsGiven) {
  ASSERT_TRUE(store_.import_file(request("")));
  EXPECT_EQ(ids(), std::vector<std::string>{"tiny:F32"});
}

TEST_F(StoreTest, LinksFilesWhereTheyLie) {
  ImportRequest wanted = request("a");
  wanted.mode = ImportMode::link;
  const auto linked = store_.import_file(wanted);
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(linked->weights_path(), wanted.path);
  EXPECT_TRUE(verify(*linked));
  const auto copied = store_.import_file(request("b"));
  EXPECT_EQ(identity_of(linked->manifest), identity_of(copied->manifest));

  ASSERT_TRUE(store_.remove("a"));
  EXPECT_TRUE(fs::exists(wanted.path)) << "a linked file belongs to somebody else";
}

// How often a link told of its progress, once for a file that wasn't read, and what it noted.
struct Linked {
  std::size_t steps = 0;
  std::string sha256;
};

TEST_F(StoreTest, DigestsAFileOnceHoweverManyModelsLinkIt) {
  test::TinyGgufOptions large;
  large.width = 256;
  write(folder_ / "from/big.gguf", test::tiny_gguf(large));
  ImportRequest first = request("a");
  first.path = folder_ / "from/big.gguf";
  first.mode = ImportMode::link;
  const auto link = [&](const ImportRequest& wanted) {
    Linked linked;
    const auto model = store_.import_file(wanted, [&](auto&) {
      ++linked.steps;
      return GoOn::yes;
    });
    EXPECT_TRUE(model) << model.error().message;
    if (model) linked.sha256 = model->manifest.files.front().sha256;
    return linked;
  };
  const Linked read = link(first);
  EXPECT_GT(read.steps, 1u);
  ImportRequest second = first;
  second.id = "b";
  EXPECT_EQ(link(second).steps, 1u);
  fs::create_hard_link(first.path, folder_ / "from/same.gguf");
  ImportRequest same = first;
  same.id = "c";
  same.path = folder_ / "from/same.gguf";
  const auto listing = store_.list();
  ASSERT_TRUE(listing);
  const KnownDigests digests(manifests_of(listing->models));
  const auto plan = plan_import(same.path, ProjectorRule::none, std::nullopt);
  EXPECT_EQ(installed_already(*plan, listing->models, digests), "a");
  const Linked known = link(same);
  EXPECT_EQ(known.steps, 1u);
  EXPECT_EQ(known.sha256, read.sha256);
  fs::last_write_time(first.path, fs::last_write_time(first.path) + std::chrono::seconds(1));
  ImportRequest changed = first;
  changed.id = "d";
  EXPECT_GT(link(changed).steps, 1u) << "it may hold something else by now";
}

TEST_F(StoreTest, KnowsAFileThatItHasCopiedUntilItChanges) {
  const ImportRequest wanted = request("a");
  const auto already = [&]() -> std::optional<std::string> {
    const auto plan = plan_import(wanted.path, ProjectorRule::none, std::nullopt);
    const auto listing = store_.list();
    return installed_already(*plan, listing->models, KnownDigests(manifests_of(listing->models)));
  };
  EXPECT_EQ(already(), std::nullopt);
  ASSERT_TRUE(store_.import_file(wanted));
  EXPECT_EQ(store_.find("a")->manifest.files.front().origin, wanted.path);
  EXPECT_EQ(already(), "a");
  fs::last_write_time(wanted.path, fs::last_write_time(wanted.path) + std::chrono::seconds(1));
  EXPECT_EQ(already(), std::nullopt);
}

TEST_F(StoreTest, TakesAnotherToolsWordForTheDigestOfItsBlobs) {
  const std::string digest(64, 'b');
  const fs::path ollama = folder_ / "o/blobs" / ("sha256-" + digest);
  const fs::path hub = folder_ / "hub/models--o--r/snapshots/1/tiny.gguf";
  write(ollama, test::tiny_gguf());
  write(folder_ / "hub/models--o--r/blobs" / digest, test::tiny_gguf());
  fs::create_directories(hub.parent_path());
  fs::create_symlink("../../blobs/" + digest, hub);
  for (const fs::path& path : {ollama, hub}) {
    ImportRequest wanted = request("");
    wanted.path = path;
    wanted.mode = ImportMode::link;
    const auto linked = store_.import_file(wanted);
    ASSERT_TRUE(linked) << linked.error().message;
    EXPECT_EQ(linked->manifest.files.front().sha256, digest);
    EXPECT_TRUE(verify(*linked));
    wanted.mode = ImportMode::copy;
    wanted.id = "copy of " + linked->manifest.id;
    EXPECT_EQ(store_.import_file(wanted)->manifest.files.front().sha256,
              sha256_hex(test::tiny_gguf()))
        << "what is copied is read anyway";
  }
  EXPECT_EQ(ids(), (std::vector<std::string>{"Werk-Tiny:F32", "copy of Werk-Tiny:F32",
                                             "copy of o/r:F32", "o/r:F32"}));
}

TEST_F(StoreTest, VerifyRefusesFilesThatAreNotAsTheyWere) {
  ImportRequest wanted = request("a");
  wanted.mode = ImportMode::link;
  const auto linked = store_.import_file(wanted);
  const auto refusal = [&] {
    const Status status = verify(*linked);
    EXPECT_EQ(status.error().code, ErrorCode::model_unusable);
    EXPECT_EQ(status.error().message.find(folder_.path().string()), std::string::npos);
    EXPECT_NE(status.error().message.find("tiny.gguf"), std::string::npos);
    return status.error().message;
  };
  fs::last_write_time(wanted.path, fs::last_write_time(wanted.path) + std::chrono::seconds(1));
  EXPECT_NE(refusal().find("was changed"), std::string::npos);
  fs::resize_file(wanted.path, 100);
  EXPECT_NE(refusal().find("has 100 bytes"), std::string::npos);
  fs::remove(wanted.path);
  EXPECT_NE(refusal().find("is missing"), std::string::npos);
  fs::create_directory(wanted.path);
  EXPECT_NE(refusal().find("is no file"), std::string::npos);
}

TEST_F(StoreTest, TakesASplitModelWholeFromAnyOfItsFiles) {
  for (std::uint16_t i = 1; i <= 3; ++i) {
    write(folder_ / "from" / ("m-0000" + std::to_string(i) + "-of-00003.gguf"), split_file(i, 3));
  }
  ImportRequest wanted = request("");
  wanted.path = folder_ / "from/m-00002-of-00003.gguf";
  const auto imported = store_.import_file(wanted);
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->manifest.id, "m:F32");
  EXPECT_EQ(imported->manifest.files.size(), 3u);
  EXPECT_EQ(imported->manifest.parameters, 96u);
  EXPECT_EQ(imported->weights_path().filename(), "m-00001-of-00003.gguf");
  EXPECT_TRUE(verify(*imported));
}

TEST_F(StoreTest, RefusesASplitModelThatIsNotWhole) {
  write(folder_ / "from/m-00001-of-00002.gguf", split_file(1, 2));
  ImportRequest wanted = request("m");
  wanted.path = folder_ / "from/m-00001-of-00002.gguf";
  EXPECT_NE(store_.import_file(wanted).error().message.find("This file is missing"),
            std::string::npos);
  write(folder_ / "from/m-00002-of-00002.gguf", split_file(2, 3));
  EXPECT_NE(store_.import_file(wanted).error().message.find("by its header 2 of 3"),
            std::string::npos);
  write(folder_ / "from/renamed.gguf", split_file(1, 2));
  wanted.path = folder_ / "from/renamed.gguf";
  EXPECT_NE(store_.import_file(wanted).error().message.find("must keep names like"),
            std::string::npos);
  EXPECT_EQ(store_.import_file(wanted).error().code, ErrorCode::model_unusable);
}

TEST_F(StoreTest, TakesTheProjectorBesideAModelThatSuitsIt) {
  write(folder_ / "from/mmproj-large.gguf", test::tiny_projector(128));
  write(folder_ / "from/mmproj-broken.gguf", "GGUF");
  ASSERT_FALSE(store_.import_file(request("without"))->projector_path());
  write(folder_ / "from/mmproj-tiny.gguf", test::tiny_projector(64));
  const auto with = store_.import_file(request("with"));
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->projector_path()->filename(), "mmproj-tiny.gguf");
  EXPECT_TRUE(with->manifest.capabilities.vision);
  EXPECT_FALSE(with->manifest.capabilities.audio);
  EXPECT_NE(identity_of(with->manifest), identity_of(store_.find("without")->manifest));

  ImportRequest none = request("none");
  none.projector_rule = ProjectorRule::none;
  EXPECT_FALSE(store_.import_file(none)->projector_path());
  ImportRequest named = request("named");
  named.projector = folder_ / "from/mmproj-large.gguf";
  EXPECT_EQ(store_.import_file(named)->projector_path()->filename(), "mmproj-large.gguf");
  named.id = "wrong";
  named.projector = folder_ / "from/tiny.gguf";
  EXPECT_NE(store_.import_file(named).error().message.find("not a projector"), std::string::npos);
}

TEST_F(StoreTest, RefusesFilesThatAreNoModel) {
  write(folder_ / "from/cut.gguf", test::tiny_gguf().substr(0, 100'000));
  write(folder_ / "from/mmproj.gguf", test::tiny_projector());
  const auto refused = [&](const fs::path& path) {
    ImportRequest wanted = request("x");
    wanted.path = path;
    return store_.import_file(wanted).error();
  };
  EXPECT_EQ(refused(folder_ / "from/cut.gguf").code, ErrorCode::model_unusable);
  EXPECT_NE(refused(folder_ / "from/cut.gguf").message.find("/from/cut.gguf: "), std::string::npos);
  EXPECT_EQ(refused(folder_ / "from/mmproj.gguf").code, ErrorCode::model_unusable);
  EXPECT_EQ(refused(folder_ / "nothing.gguf").code, ErrorCode::not_found);
  EXPECT_EQ(refused(folder_ / "from").code, ErrorCode::io);
  EXPECT_FALSE(fs::exists(folder_ / "home")) << "nothing was begun";
}

TEST_F(StoreTest, RefusesAnotherFileThanTheExpectedOne) {
  ImportRequest wanted = request("a");
  wanted.expected_sha256 = std::string(64, '0');
  EXPECT_EQ(store_.import_file(wanted).error().code, ErrorCode::model_unusable);
  EXPECT_TRUE(ids().empty());
  wanted.expected_sha256 = sha256_hex(test::tiny_gguf());
  EXPECT_TRUE(store_.import_file(wanted));
}

TEST_F(StoreTest, StopsWhenToldAndLeavesNothing) {
  const auto stopped = store_.import_file(request("a"), [](auto&) { return GoOn::stop; });
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(entries_of_store(), 1u) << "the lock";
}

TEST_F(StoreTest, RefusesASourceThatChangesMeanwhile) {
  const auto refused = store_.import_file(request("a"), [&](auto&) {
    std::ofstream(folder_ / "from/tiny.gguf", std::ios::app) << "more";
    return GoOn::yes;
  });
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_EQ(entries_of_store(), 1u) << "the lock";
}

TEST_F(StoreTest, RefusesASecondImportOfAnIdWhileOneIsUnderWay) {
  std::optional<Result<InstalledModel>> second;
  const auto first = store_.import_file(request("a"), [&](auto&) {
    if (!second) second.emplace(store_.import_file(request("a")));
    return GoOn::yes;
  });
  EXPECT_TRUE(first);
  ASSERT_TRUE(second && !second->has_value());
  EXPECT_EQ(second->error().code, ErrorCode::conflict);
  EXPECT_EQ(ids(), std::vector<std::string>{"a"});
}

TEST_F(StoreTest, LetsOtherModelsComeAndGoDuringAnImport) {
  bool asked = false;
  const auto first = store_.import_file(request("a"), [&](auto&) {
    if (!asked) {
      asked = true;
      EXPECT_TRUE(store_.import_file(request("b")));
      EXPECT_TRUE(store_.import_file(request("c")));
      EXPECT_TRUE(store_.remove("b"));
      EXPECT_EQ(ids(), std::vector<std::string>{"c"});
    }
    return GoOn::yes;
  });
  EXPECT_TRUE(asked && first);
  EXPECT_EQ(ids(), (std::vector<std::string>{"a", "c"}));
}

TEST_F(StoreTest, RefusesAnAliasThatAnotherModelTookMeanwhile) {
  ImportRequest wanted = request("a");
  wanted.aliases = {"shared"};
  bool asked = false;
  const auto first = store_.import_file(wanted, [&](auto&) {
    if (!asked) {
      asked = true;
      EXPECT_TRUE(store_.import_file(request("shared")));
    }
    return GoOn::yes;
  });
  EXPECT_EQ(first.error().code, ErrorCode::conflict);
  EXPECT_EQ(ids(), std::vector<std::string>{"shared"});
}

TEST_F(StoreTest, LetsExactlyOneOfManyThreadsImportAnId) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 4; ++round) {
    const std::string id = "round" + std::to_string(round);
    std::vector<std::thread> threads;
    std::array<ErrorCode, kThreads> failures{};
    std::array<bool, kThreads> succeeded{};
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const auto result = Store(folder_ / "home", options()).import_file(request(id));
        succeeded[i] = result.has_value();
        if (!result) failures[i] = result.error().code;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::count(succeeded.begin(), succeeded.end(), true), 1);
    EXPECT_EQ(std::count(failures.begin(), failures.end(), ErrorCode::conflict), kThreads - 1);
  }
  EXPECT_EQ(ids().size(), 4u);
  EXPECT_EQ(entries_of_store(), 5u);
}

TEST_F(StoreTest, FindNamesWhatResemblesTheName) {
  ASSERT_TRUE(store_.import_file(request("smollm2")));
  const auto missing = store_.find("smolm2");
  EXPECT_EQ(missing.error().code, ErrorCode::model_not_found);
  EXPECT_NE(missing.error().message.find("Did you mean smollm2?"), std::string::npos);
  EXPECT_EQ(store_.find(std::string("\x00..", 3)).error().code, ErrorCode::model_not_found);
  EXPECT_EQ(store_.remove("smolm2").error().code, ErrorCode::not_found);
}

TEST_F(StoreTest, ListsWhatIsBrokenBesideWhatIsNot) {
  ASSERT_TRUE(store_.import_file(request("good")));
  ASSERT_TRUE(store_.import_file(request("bad")));
  ASSERT_TRUE(store_.import_file(request("moved")));
  const fs::path models = folder_ / "home/models";
  write(models / "bad/manifest.json", "{");
  fs::rename(models / "moved", models / "elsewhere");
  fs::create_directory(models / "empty");
  write(models / "file", "a file is no model");
  const auto listing = store_.list();
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->models.size(), 1u);
  ASSERT_EQ(listing->broken.size(), 3u);
  EXPECT_EQ(listing->broken[0].id, "bad");
  EXPECT_NE(listing->broken[0].error.message.find("not JSON"), std::string::npos);
  EXPECT_NE(listing->broken[1].error.message.find("folder"), std::string::npos);
  EXPECT_NE(listing->broken[2].error.message.find("no manifest.json"), std::string::npos);
  EXPECT_EQ(store_.find("bad").error().code, ErrorCode::model_unusable);
  EXPECT_TRUE(store_.find("good"));
  EXPECT_EQ(store_.import_file(request("bad")).error().code, ErrorCode::conflict);
  EXPECT_TRUE(store_.remove("bad")) << "what is broken can be removed";
  EXPECT_TRUE(store_.import_file(request("bad")));
}

TEST_F(StoreTest, AnIdRemovedIsGoneAndCanBeImportedAnew) {
  ASSERT_TRUE(store_.import_file(request("a")));
  std::ifstream held(store_.find("a")->weights_path(), std::ios::binary);
  ASSERT_TRUE(store_.remove("a"));
  EXPECT_EQ(store_.find("a").error().code, ErrorCode::model_not_found);
  EXPECT_EQ(entries_of_store(), 1u) << "the lock";
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(held), {}), test::tiny_gguf());
  EXPECT_TRUE(store_.import_file(request("a")));
}

}  // namespace
}  // namespace werk::model
