// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.LinkCeiling;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.benchmarks.harness.RandomCheckpoint.Tensor;
import dev.gantry.benchmarks.harness.Turns;
import dev.gantry.core.Device;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.models.HubModel;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/// Measures how fast a Llama with random weights loads into a block that can answer: `ModelBench
/// FOLDER LAYERS`. A layer has 0.4 GB of BF16. The files are in the page cache. The speed of the
/// link to the GPU is measured first, in the same process.
final class ModelBench {
  private static final long HIDDEN = 4096;
  private static final long INNER = 11008;
  private static final long VOCABULARY = 32000;
  private static final int BLOCK = 128;
  private static final int RUNS = 3;
  private static final String FILE = "model.safetensors";

  private static final ai.djl.Device GPU = ai.djl.Device.gpu();

  private ModelBench() {}

  static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    int layers = Integer.parseInt(arguments[1]);
    Path plain = make(folder.resolve("llama-bf16"), layers, false);
    Path quantised = make(folder.resolve("llama-fp8"), layers, true);
    Device.Cuda gpu = new Device.Cuda(0);
    new Comparison("link", LinkCeiling.BYTES)
        .before(Turns::pause)
        .add(LinkCeiling.of(gpu, true))
        .add(LinkCeiling.of(gpu, false))
        .print(RUNS);
    LoadOptions asStored = LoadOptions.builder().optAsStored(true).build();
    try (Model model = loads("BF16", plain, asStored);
        LiveWeights live = LiveWeights.of(model.getBlock())) {
      System.out.printf(
          "an offload is prepared in %.3f s%n", Contender.seconds(live::prepareOffload));
      new Comparison("BF16, offload and restore", Files.size(plain.resolve(FILE)))
          .before(Turns::pause)
          .addTimed(
              "offload",
              () -> {
                double seconds = Contender.seconds(live::offload);
                live.restore();
                return seconds;
              })
          .addTimed(
              "restore",
              () -> {
                live.offload();
                return Contender.seconds(live::restore);
              })
          .print(RUNS);
      answer(model);
    }
    loads("FP8 to BF16", quantised, LoadOptions.builder().optCast(DataType.BFLOAT16).build())
        .close();
  }

  /// @return a loaded model, which was also refreshed in place
  private static Model loads(String title, Path folder, LoadOptions options) throws Exception {
    PageCache.warm(folder.resolve(FILE));
    HubModel hub = HubModel.of(folder);
    Model model = hub.load(GPU, options);
    new Comparison(title, Files.size(folder.resolve(FILE)))
        .before(Turns::pause)
        .add(Contender.closing("plain load", () -> plain(folder)))
        .addTimed("into a new block", () -> newBlock(hub, options))
        .add("refresh in place", () -> hub.refresh(model, options))
        .print(RUNS);
    answer(model);
    return model;
  }

  private static NDManager plain(Path folder) {
    NDManager manager = NDManager.newBaseManager(GPU);
    try (Weights weights = Weights.open(folder)) {
      var _ = weights.load(manager);
    }
    return manager;
  }

  private static double newBlock(HubModel hub, LoadOptions options) throws Exception {
    long start = System.nanoTime();
    try (Model model = hub.load(GPU, options)) {
      double seconds = (System.nanoTime() - start) / 1e9;
      answer(model);
      return seconds;
    }
  }

  private static void answer(Model model) throws TranslateException {
    try (Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator());
        NDArray tokens = model.getNDManager().create(new long[] {1, 2, 3, 4}, new Shape(1, 4));
        NDList answer = predictor.predict(new NDList(tokens));
        NDArray floats = answer.getFirst().toType(DataType.FLOAT32, true)) {
      float sum = 0;
      for (float value : floats.toFloatArray()) {
        sum += Math.abs(value);
      }
      if (!(sum > 0 && sum < Float.MAX_VALUE)) {
        throw new IllegalStateException("the model answers " + sum);
      }
    }
  }

  private static Path make(Path folder, int layers, boolean quantised) throws IOException {
    Path file = folder.resolve(FILE);
    if (Files.exists(file)) {
      return folder;
    }
    Files.createDirectories(folder);
    List<Tensor> tensors = new ArrayList<>();
    tensors.add(tensor("model.embed_tokens.weight", "BF16", VOCABULARY, HIDDEN));
    for (int layer = 0; layer < layers; layer++) {
      String prefix = "model.layers." + layer + ".";
      for (String name : new String[] {"q", "k", "v", "o"}) {
        matrix(tensors, prefix + "self_attn." + name + "_proj.weight", HIDDEN, HIDDEN, quantised);
      }
      matrix(tensors, prefix + "mlp.gate_proj.weight", INNER, HIDDEN, quantised);
      matrix(tensors, prefix + "mlp.up_proj.weight", INNER, HIDDEN, quantised);
      matrix(tensors, prefix + "mlp.down_proj.weight", HIDDEN, INNER, quantised);
      tensors.add(tensor(prefix + "input_layernorm.weight", "BF16", HIDDEN));
      tensors.add(tensor(prefix + "post_attention_layernorm.weight", "BF16", HIDDEN));
    }
    tensors.add(tensor("model.norm.weight", "BF16", HIDDEN));
    tensors.add(tensor("lm_head.weight", "BF16", VOCABULARY, HIDDEN));
    var _ = RandomCheckpoint.make(file, 4096, tensors);
    Files.writeString(
        folder.resolve("config.json"),
        """
        {"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu","hidden_size":%d,
        "intermediate_size":%d,"num_hidden_layers":%d,"num_attention_heads":32,"num_key_value_heads":32,
        "max_position_embeddings":4096,"rms_norm_eps":1e-5,"rope_theta":10000.0,"vocab_size":%d,
        "tie_word_embeddings":false%s}
        """
            .formatted(
                HIDDEN,
                INNER,
                layers,
                VOCABULARY,
                quantised
                    ? ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}"
                    : ""));
    return folder;
  }

  private static void matrix(
      List<Tensor> tensors, String name, long rows, long columns, boolean quantised) {
    tensors.add(tensor(name, quantised ? "F8_E4M3" : "BF16", rows, columns));
    if (quantised) {
      tensors.add(tensor(name + "_scale_inv", "F32", rows / BLOCK, columns / BLOCK));
    }
  }

  /// Makes a tensor whose random bits are small numbers, so that the model's answer is finite:
  /// magnitudes of 0.0078 to 0.03 for BF16, FP8 codes below 2, and scales of 0.0078 to 0.03.
  private static Tensor tensor(String name, String dtype, Long... shape) {
    LongUnaryOperator bits =
        switch (dtype) {
          case "BF16" -> random -> (random & 0x80FF80FF80FF80FFL) | 0x3C003C003C003C00L;
          case "F8_E4M3" -> random -> random & 0xBFBFBFBFBFBFBFBFL;
          case "F32" -> random -> (random & 0x00FFFFFF00FFFFFFL) | 0x3C0000003C000000L;
          default -> throw new IllegalArgumentException(dtype);
        };
    return new Tensor(name, dtype, List.of(shape), bits);
  }
}
