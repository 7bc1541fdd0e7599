// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.core.DType;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Finds the quantised tensors of weights, by the configuration beside them and by the names of the stored tensors.
public final class QuantisedWeights {
  private static final String CONFIGURATION = "config.json";

  /// The name endings of stored tensors on which a weight's values do not depend, such as the
  /// scales of activations.
  private static final List<String> OF_ACTIVATIONS =
      List.of(
          ".input_scale",
          ".input_global_scale",
          ".output_scale",
          ".activation_scale",
          ".weight_format");

  private final Session session;
  private final Map<String, StoredTensor> stored;
  private final Location location;
  private final JsonTree config;
  private final String method;
  private final NamePatterns patterns;
  private final Set<String> used = new HashSet<>();

  private QuantisedWeights(
      Session session, Map<String, StoredTensor> stored, Location location, JsonTree config) {
    this.session = session;
    this.stored = stored;
    this.location = location;
    this.config = config;
    this.patterns = new NamePatterns(location);
    this.method = config.text("quant_method").orElse("");
  }

  /// Returns the tensors with the names and shapes that the model uses. Quantised tensors have an
  /// [dev.gantry.formats.spi.Encoding.Quantised]; their inputs and the scales of activations are
  /// left out.
  ///
  /// @throws MalformedFileException if a configuration is damaged or names an unknown method, or
  ///     stored tensors do not fit together
  public static SequencedMap<String, StoredTensor> tensors(
      Session session, WeightsCatalogue catalogue) {
    if (!catalogue.quantised().isEmpty()) {
      return catalogue.quantised();
    }
    SequencedMap<String, StoredTensor> stored = catalogue.tensors();
    Optional<Location> first = catalogue.files().stream().findFirst();
    if (first.isEmpty() || stored.values().stream().noneMatch(QuantisedWeights::maybeQuantised)) {
      return stored;
    }
    Location beside = first.orElseThrow().sibling(CONFIGURATION);
    JsonTree config = configuration(session, beside).object("quantization_config");
    return new QuantisedWeights(session, stored, beside, config).find();
  }

  /// Returns FP8 codes without scales as a quantised tensor.
  public static StoredTensor unscaled(StoredTensor codes) {
    return FloatLayouts.unscaled(codes);
  }

  private static boolean maybeQuantised(StoredTensor tensor) {
    return switch (tensor.dtype()) {
      case I32, U8, I8, F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ -> true;
      case BF16 -> tensor.shape().rank() == 2 && tensor.shape().dimension(1) == 1;
      default -> false;
    };
  }

  private static JsonTree configuration(Session session, Location location) {
    FileBytes file;
    try {
      file = FileBytes.open(session, location);
    } catch (TransferException failed) {
      // S3 answers 403 for a missing file if the caller may not list the bucket.
      boolean forbidden =
          failed.failure() instanceof Failure.Remote(int status, _) && status == 403;
      if (failed.isNotFound() || forbidden) {
        return JsonTree.EMPTY;
      }
      throw failed;
    }
    try (file) {
      return JsonTree.read(file);
    }
  }

  private SequencedMap<String, StoredTensor> find() {
    SequencedMap<String, StoredTensor> found = new LinkedHashMap<>();
    stored
        .values()
        .forEach(tensor -> counted(tensor).ifPresent(made -> found.put(tensor.name(), made)));
    SequencedMap<String, StoredTensor> all = new LinkedHashMap<>();
    stored.forEach((name, tensor) -> {
      StoredTensor made = found.get(name);
      if (made != null) {
        if (all.putIfAbsent(made.name(), made) != null || isOther(made)) {
          throw malformed("duplicate-tensor", "'" + made.name() + "' is stored twice");
        }
      } else if (!used.contains(name) && !isOfActivations(name)) {
        requireNotLeft(tensor);
        all.put(name, tensor);
      }
    });
    return Collections.unmodifiableSequencedMap(all);
  }

  /// Whether a stored tensor that is not part of a quantised tensor has the same name as this
  /// quantised tensor.
  private boolean isOther(StoredTensor made) {
    return stored.containsKey(made.name()) && !used.contains(made.name());
  }

  private boolean isOfActivations(String name) {
    return !method.isEmpty() && OF_ACTIVATIONS.stream().anyMatch(name::endsWith);
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(location, 0, kind, detail);
  }

  /// Refuses a stored tensor that looks like a part of a quantised tensor, if that quantised
  /// tensor was not found.
  private void requireNotLeft(StoredTensor tensor) {
    String name = tensor.name();
    boolean packed =
        Stream.of(".qweight", ".weight_packed", "_blocks").anyMatch(name::endsWith)
            && (tensor.dtype() == DType.I32 || tensor.dtype() == DType.U8);
    boolean unscaled =
        !method.isEmpty() && name.endsWith(".weight") && tensor.dtype().name().startsWith("F8_E");
    if (packed || unscaled) {
      throw new MalformedFileException(
          tensor.extent().file(),
          tensor.extent().offset(),
          "unknown-quantisation",
          packed
              ? "'%s' is quantised, and %s does not exist or does not say how (quant_method '%s')"
                  .formatted(name, location, method)
              : "'" + name + "' is " + tensor.dtype() + ", and there are no scales for it");
    }
  }

  /// Calls [#layout], and refuses sizes whose arithmetic overflows.
  private Optional<StoredTensor> counted(StoredTensor codes) {
    try {
      return layout(codes);
    } catch (MisuseException | ArithmeticException e) {
      throw new MalformedFileException(
          codes.extent().file(),
          codes.extent().offset(),
          "too-large",
          "'%s' of shape %s, or its groups: %s"
              .formatted(codes.name(), codes.shape(), e.getMessage()));
    }
  }

  /// Builds the quantised tensor that this stored tensor belongs to; empty if it belongs to none.
  private Optional<StoredTensor> layout(StoredTensor codes) {
    String name = codes.name();
    return switch (method) {
      case "awq" ->
          module(name, ".qweight")
              .map(module -> IntegerLayouts.awq(of(codes, module + ".weight"), module, config));
      case "gptq" ->
          module(name, ".qweight")
              .map(module ->
                  IntegerLayouts.gptq(
                      of(codes, module + ".weight"),
                      module,
                      GroupConfig.ofGptq(config, module, patterns)));
      case "mxfp4" ->
          module(name, "_blocks")
              .filter(_ -> codes.dtype() == DType.U8)
              .map(tensor -> {
                Layout layout = of(codes, tensor);
                return FloatLayouts.experts(layout, layout.get(tensor + "_scales"));
              });
      case "compressed-tensors" -> compressed(codes, name);
      case "modelopt" -> modelOpt(codes, name);
      case "bitsandbytes" -> bitsAndBytes(codes, name);
      case "", "fp8", "mxfp8", "fbgemm_fp8" -> eightBits(codes, name);
      default ->
          throw malformed(
              "unknown-method",
              "quant_method '"
                  + method
                  + "' is not known; the tensors can be loaded as they are stored");
    };
  }

  private static Optional<String> module(String name, String suffix) {
    return name.endsWith(suffix)
        ? Optional.of(name.substring(0, name.length() - suffix.length()))
        : Optional.empty();
  }

  private Layout of(StoredTensor codes, String name) {
    return new Layout(session, stored, codes, name, used);
  }

  private Optional<StoredTensor> compressed(StoredTensor codes, String name) {
    Optional<String> packed = module(name, "_packed").filter(weight -> weight.endsWith(".weight"));
    String weight = packed.orElse(name);
    boolean scaled =
        FloatLayouts.CODES.contains(codes.dtype()) && stored.containsKey(name + "_scale");
    if (packed.isEmpty() && !scaled && !(isFloat8(codes) && name.endsWith(".weight"))) {
      return Optional.empty();
    }
    GroupConfig group =
        GroupConfig.ofCompressed(config, module(weight, ".weight").orElse(weight), patterns);
    Layout layout = of(codes, weight);
    return Optional.of(
        switch (group.format()) {
          case "pack-quantized" -> {
            layout.require(
                packed.isPresent(), "contradicting-format", "'" + name + "' is not packed");
            yield IntegerLayouts.compressed(layout, weight, group.weights());
          }
          case "int-quantized", "naive-quantized", "float-quantized", "mxfp8-quantized" -> {
            StoredTensor scales = layout.get(weight + "_scale");
            boolean symmetric = group.weights().get("symmetric", Boolean.class).orElse(true);
            yield FloatLayouts.scaled(
                layout,
                scales,
                symmetric ? null : layout.get(weight + "_zero_point"),
                group.format().startsWith("mxfp8")
                    ? new ScaleShapes.Block(1, 32)
                    : block(group.weights().counts("block_structure")));
          }
          case "nvfp4-pack-quantized" ->
              FloatLayouts.nvfp4(
                  layout,
                  layout.get(weight + "_scale"),
                  layout.get(weight + "_global_scale"),
                  true);
          case "mxfp4-pack-quantized" -> FloatLayouts.mxfp4(layout, layout.get(weight + "_scale"));
          default ->
              throw malformed(
                  "unknown-format",
                  "the format '" + group.format() + "' of '" + weight + "' is not known");
        });
  }

  private static boolean isFloat8(StoredTensor codes) {
    return FloatLayouts.CODES.contains(codes.dtype()) && codes.dtype() != DType.I8;
  }

  private Optional<StoredTensor> modelOpt(StoredTensor codes, String name) {
    if (codes.dtype() == DType.U8 && stored.containsKey(name + "_scale")) {
      Layout layout = of(codes, name);
      return Optional.of(
          FloatLayouts.nvfp4(
              layout, layout.get(name + "_scale"), layout.get(name + "_scale_2"), false));
    }
    return eightBits(codes, name);
  }

  private Optional<StoredTensor> bitsAndBytes(StoredTensor codes, String name) {
    for (String kind : List.of("nf4", "fp4")) {
      String state = name + ".quant_state.bitsandbytes__" + kind;
      if (stored.containsKey(state)) {
        return Optional.of(NormalFloatLayout.of(of(codes, name), name, state));
      }
    }
    Optional<String> module = module(name, ".weight").filter(_ -> codes.dtype() == DType.I8);
    return module.map(one -> {
      Layout layout = of(codes, name);
      return FloatLayouts.rowMaxima(layout, layout.get(one + ".SCB"));
    });
  }

  /// Builds a tensor of 8-bit codes with scales, or one of DeepSeek's experts of 4-bit codes.
  private Optional<StoredTensor> eightBits(StoredTensor codes, String name) {
    if (!FloatLayouts.CODES.contains(codes.dtype())) {
      return Optional.empty();
    }
    Layout layout = of(codes, name);
    Optional<StoredTensor> scales = FloatLayouts.scalesOf(layout, name);
    if (scales.isEmpty()) {
      return Optional.empty();
    }
    boolean pairs = codes.dtype() == DType.I8 && scales.orElseThrow().dtype() == DType.F8_E8M0;
    return Optional.of(
        pairs
            ? FloatLayouts.mxfp4(layout, scales.orElseThrow())
            : FloatLayouts.scaled(
                layout, scales.orElseThrow(), null, block(config.counts("weight_block_size"))));
  }

  private ScaleShapes.@Nullable Block block(List<Long> sizes) {
    if (sizes.isEmpty()) {
      return null;
    }
    if (sizes.size() != 2 || sizes.stream().anyMatch(size -> size <= 0)) {
      throw malformed(
          "weight-block-size", "a block must have two positive sizes (was " + sizes + ")");
    }
    return new ScaleShapes.Block(sizes.getFirst(), sizes.getLast());
  }
}
