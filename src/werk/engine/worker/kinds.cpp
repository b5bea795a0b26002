#include "werk/engine/worker/kinds.hpp"

#include <array>

namespace werk::engine::worker {
namespace {

constexpr std::array<std::string_view, 2> kOnnxVariables = {"WERK_ONNX_GENAI_PYTHON",
                                                            "WERK_ONNX_RUNTIME_PYTHON"};
constexpr std::array<std::string_view, 1> kTransformersVariables = {"WERK_TRANSFORMERS_PYTHON"};

}  // namespace

const WorkerKind kOnnxGenai = {"onnx-genai",
                               "onnx-genai",
                               "onnx_genai_worker.py",
                               "onnxruntime-genai",
                               "onnxruntime_genai",
                               kOnnxVariables,
                               "WERK_ONNX_GENAI_MODEL_CACHE_SIZE",
                               "ONNX Runtime GenAI in a resident worker, one call at a time"};
const WorkerKind kTransformers = {"transformers",
                                  "safetensors",
                                  "transformers_worker.py",
                                  "transformers",
                                  "torch, transformers.generation.utils",
                                  kTransformersVariables,
                                  "WERK_TRANSFORMERS_MODEL_CACHE_SIZE",
                                  "Transformers in a resident worker, one call at a time"};

const WorkerKind* worker_kind(std::string_view name) {
  for (const WorkerKind* kind : {&kOnnxGenai, &kTransformers}) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace werk::engine::worker
