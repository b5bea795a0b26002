// A TLS server's certificate, for 127.0.0.1 and localhost unless told otherwise, made on the spot
// and signed by itself, so that a client trusts it by its own file and by nothing else. Owned by
// one test server.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

namespace werk::test {

struct CertificateFacts {
  std::string names = "IP:127.0.0.1,DNS:localhost";
  long valid_until_s = 24L * 3600;  // from now
};

class TestCertificate {
 public:
  explicit TestCertificate(const std::filesystem::path& folder, const CertificateFacts& facts = {})
      : file_(folder / "hub.pem"), key_file_(folder / "hub.key") {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
    X509* made = certificate.get();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -7200);
    X509_gmtime_adj(X509_getm_notAfter(made), facts.valid_until_s);
    X509_set_pubkey(made, key.get());
    X509_NAME* name = X509_get_subject_name(made);
    const auto* text = reinterpret_cast<const unsigned char*>("scripted hub");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(made, name);
    extend(made, NID_basic_constraints, "critical,CA:TRUE");
    extend(made, NID_subject_alt_name, facts.names.c_str());
    context_.reset(SSL_CTX_new(TLS_server_method()));
    const bool right = X509_sign(made, key.get(), EVP_sha256()) > 0 && context_ &&
                       SSL_CTX_use_certificate(context_.get(), made) == 1 &&
                       SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1;
    std::FILE* file = right ? std::fopen(file_.c_str(), "w") : nullptr;
    if (file == nullptr) throw std::runtime_error("no certificate could be made");
    PEM_write_X509(file, made);
    std::fclose(file);
    file = std::fopen(key_file_.c_str(), "w");
    if (file == nullptr) throw std::runtime_error("no key could be written");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }

  SSL_CTX* context() const { return context_.get(); }
  const std::filesystem::path& file() const { return file_; }
  // For servers that are programs of their own.
  const std::filesystem::path& key_file() const { return key_file_; }

 private:
  static void extend(X509* certificate, int which, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, which, value);
    if (extension == nullptr) throw std::runtime_error("no certificate could be made");
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::filesystem::path file_;
  std::filesystem::path key_file_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace werk::test
