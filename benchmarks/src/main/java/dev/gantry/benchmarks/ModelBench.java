// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.benchmarks.harness.Pause;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.djl.LiveWeights;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.models.HubModel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.SplittableRandom;
import java.util.function.LongUnaryOperator;

/// How fast a Llama of random weights comes into a block that answers: `ModelBench FOLDER LAYERS`. A
/// layer has 0.4 GB of BF16. The bytes are hot. Prints a line a run, with the link's speed of the same
/// run before them.
public final class ModelBench {
  private static final int HIDDEN = 4096;
  private static final int INNER = 11008;
  private static final int VOCABULARY = 32000;
  private static final int BLOCK = 128;
  private static final int RUNS = 3;
  private static final int CHUNK_BYTES = 8 << 20;
  private static final long LINK_BYTES = 1L << 30;

  private record Kind(String dtype, int bytes, Shape shape) {
    Kind(String dtype, int bytes, long... shape) {
      this(dtype, bytes, new Shape(shape));
    }

    long size() {
      return bytes * shape.size();
    }
  }

  private interface Step {
    void run() throws IOException, TranslateException;
  }

  private ModelBench() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Path folder = Path.of(arguments[0]);
    int layers = Integer.parseInt(arguments[1]);
    Path plain = make(folder.resolve("llama-bf16"), layers, false);
    Path quantised = make(folder.resolve("llama-fp8"), layers, true);
    link();
    if (arguments.length < 3 || arguments[2].equals("bf16")) {
      bf16(plain);
    }
    fp8(quantised);
  }

  private static void bf16(Path folder) throws IOException, TranslateException {
    PageCache.warm(folder.resolve("model.safetensors"));
    plain("BF16, plain load", folder);
    HubModel hub = HubModel.of(folder);
    LoadOptions asStored = LoadOptions.builder().optAsStored(true).build();
    long bytes = Files.size(folder.resolve("model.safetensors"));
    for (int run = 0; run < RUNS; run++) {
      Model[] loaded = new Model[1];
      time("BF16, into a block", bytes, () -> loaded[0] = hub.load(Device.gpu(), asStored));
      try (Model model = loaded[0]) {
        answer(model);
        if (run == RUNS - 1) {
          for (int again = 0; again < RUNS; again++) {
            time("BF16, refresh in place", bytes, () -> hub.refresh(model, asStored));
          }
          answer(model);
          sleepAndWake(model.getBlock(), bytes);
          answer(model);
        }
      }
    }
  }

  private static void fp8(Path folder) throws IOException, TranslateException {
    PageCache.warm(folder.resolve("model.safetensors"));
    plain("FP8, plain load", folder);
    HubModel hub = HubModel.of(folder);
    long bytes = Files.size(folder.resolve("model.safetensors"));
    LoadOptions cast = LoadOptions.builder().optCast(DataType.BFLOAT16).build();
    for (int run = 0; run < RUNS; run++) {
      Model[] loaded = new Model[1];
      time("FP8 to BF16, into a block", bytes, () -> loaded[0] = hub.load(Device.gpu(), cast));
      try (Model model = loaded[0]) {
        answer(model);
        if (run == RUNS - 1) {
          for (int again = 0; again < RUNS; again++) {
            time("FP8 to BF16, refresh in place", bytes, () -> hub.refresh(model, cast));
          }
        }
      }
    }
  }

  private static void plain(String label, Path folder) throws IOException, TranslateException {
    for (int run = 0; run < RUNS + 1; run++) {
      try (NDManager manager = NDManager.newBaseManager(Device.gpu())) {
        time(
            label,
            Files.size(folder.resolve("model.safetensors")),
            () -> {
              try (Weights weights = Weights.open(folder)) {
                weights.load(manager);
              }
            });
      }
    }
  }

  private static void sleepAndWake(Block block, long bytes) throws IOException, TranslateException {
    try (LiveWeights live = LiveWeights.of(block)) {
      time("prepare an offload", bytes, live::prepareOffload);
      for (int run = 0; run < RUNS; run++) {
        time("offload", bytes, live::offload);
        time("restore", bytes, live::restore);
      }
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

  /// Copies between pinned memory and the GPU.
  private static void link() throws IOException, TranslateException {
    CudaContext context = CudaContext.of(new dev.gantry.core.Device.Cuda(0));
    PinnedSlab host = PinnedSlab.allocate(context, LINK_BYTES);
    DeviceSlab device = DeviceSlab.allocate(context, LINK_BYTES);
    for (int run = 0; run < RUNS; run++) {
      time("link, host to device", LINK_BYTES, () -> device.copyFromHost(0, host.segment()));
      time(
          "link, device to host",
          LINK_BYTES,
          () -> device.copyToHost(0, host.segment(), LINK_BYTES));
    }
    device.release();
    host.release();
  }

  private static void time(String label, long bytes, Step step)
      throws IOException, TranslateException {
    Pause.take();
    long start = System.nanoTime();
    step.run();
    double seconds = (System.nanoTime() - start) / 1e9;
    System.out.printf(
        Locale.ROOT,
        "%s\t%.2f GB/s\t%.3f s, %.2f GB%n",
        label,
        bytes / 1e9 / seconds,
        seconds,
        bytes / 1e9);
  }

  private static Path make(Path folder, int layers, boolean quantised) throws IOException {
    Path file = folder.resolve("model.safetensors");
    if (Files.exists(file)) {
      return folder;
    }
    Files.createDirectories(folder);
    SequencedMap<String, Kind> tensors = new LinkedHashMap<>();
    tensors.put("model.embed_tokens.weight", new Kind("BF16", 2, VOCABULARY, HIDDEN));
    for (int layer = 0; layer < layers; layer++) {
      String prefix = "model.layers." + layer + ".";
      for (String name : new String[] {"q", "k", "v", "o"}) {
        matrix(tensors, prefix + "self_attn." + name + "_proj.weight", HIDDEN, HIDDEN, quantised);
      }
      matrix(tensors, prefix + "mlp.gate_proj.weight", INNER, HIDDEN, quantised);
      matrix(tensors, prefix + "mlp.up_proj.weight", INNER, HIDDEN, quantised);
      matrix(tensors, prefix + "mlp.down_proj.weight", HIDDEN, INNER, quantised);
      tensors.put(prefix + "input_layernorm.weight", new Kind("BF16", 2, HIDDEN));
      tensors.put(prefix + "post_attention_layernorm.weight", new Kind("BF16", 2, HIDDEN));
    }
    tensors.put("model.norm.weight", new Kind("BF16", 2, HIDDEN));
    tensors.put("lm_head.weight", new Kind("BF16", 2, VOCABULARY, HIDDEN));
    write(file, tensors);
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
      SequencedMap<String, Kind> tensors, String name, long rows, long columns, boolean quantised) {
    tensors.put(
        name,
        quantised ? new Kind("F8_E4M3", 1, rows, columns) : new Kind("BF16", 2, rows, columns));
    if (quantised) {
      tensors.put(name + "_scale_inv", new Kind("F32", 4, rows / BLOCK, columns / BLOCK));
    }
  }

  private static void write(Path file, SequencedMap<String, Kind> tensors) throws IOException {
    StringBuilder header = new StringBuilder("{");
    long at = 0;
    for (var entry : tensors.entrySet()) {
      Kind kind = entry.getValue();
      StringBuilder shape = new StringBuilder();
      for (long size : kind.shape().getShape()) {
        shape.append(shape.isEmpty() ? "" : ",").append(size);
      }
      header
          .append(at == 0 ? "" : ",")
          .append(
              "\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%d,%d]}"
                  .formatted(entry.getKey(), kind.dtype(), shape, at, at + kind.size()));
      at += kind.size();
    }
    header.append('}');
    while ((header.length() + 8) % 4096 != 0) {
      header.append(' ');
    }
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      byte[] text = header.toString().getBytes(StandardCharsets.US_ASCII);
      RandomCheckpoint.write(
          channel,
          ByteBuffer.allocate(8 + text.length)
              .order(ByteOrder.LITTLE_ENDIAN)
              .putLong(text.length)
              .put(text)
              .flip());
      SplittableRandom random = new SplittableRandom(1);
      ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES).order(ByteOrder.LITTLE_ENDIAN);
      for (Kind kind : tensors.values()) {
        LongUnaryOperator bits = bits(kind.dtype());
        for (long left = kind.size(); left > 0; left -= chunk.limit()) {
          chunk.clear();
          for (int i = 0; i < CHUNK_BYTES; i += Long.BYTES) {
            chunk.putLong(i, bits.applyAsLong(random.nextLong()));
          }
          chunk.limit((int) Math.min(CHUNK_BYTES, left));
          RandomCheckpoint.write(channel, chunk);
        }
      }
      channel.force(true);
    }
  }

  /// Random bits as small numbers: 0.0078 to 0.03 of either sign, FP8 codes under 2, scales of 0.0078
  /// to 0.03.
  private static LongUnaryOperator bits(String dtype) {
    return switch (dtype) {
      case "BF16" -> random -> (random & 0x80FF80FF80FF80FFL) | 0x3C003C003C003C00L;
      case "F8_E4M3" -> random -> random & 0xBFBFBFBFBFBFBFBFL;
      case "F32" -> random -> (random & 0x00FFFFFF00FFFFFFL) | 0x3C0000003C000000L;
      default -> throw new IllegalArgumentException(dtype);
    };
  }
}
