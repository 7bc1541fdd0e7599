// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.contents;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.PrintWriter;

/// Reports the tensors of weights, without reading their data.
public record WeightsContents(WeightsCatalogue weights) implements Report {
  private static final int PAGE_BYTES = 4096;

  @Override
  public Object json() {
    return Json.object()
        .with("format", weights.format())
        .with("tensors", Json.byName(weights.tensors().values(), StoredTensor::name, this::json))
        .with("metadata", weights.metadata());
  }

  private Object json(StoredTensor tensor) {
    return Json.object()
        .with("dtype", dtype(tensor))
        .with("shape", value(tensor).shape())
        .with("file", tensor.extent().file())
        .with("offset", tensor.extent().offset())
        .with("length", tensor.extent().length());
  }

  @Override
  public void print(PrintWriter out) {
    long onPages =
        weights.tensors().values().stream()
            .filter(tensor -> tensor.extent().offset() % PAGE_BYTES == 0)
            .count();
    long misaligned =
        weights.tensors().values().stream()
            .filter(tensor -> tensor.extent().offset() % tensor.dtype().alignmentBytes() != 0)
            .count();
    out.printf(
        "%s, %,d file(s), %,d tensors, %,d bytes; %,d start on a page, %,d are not aligned"
            + " to their dtype%n",
        weights.format(),
        weights.files().size(),
        weights.tensors().size(),
        weights.totalBytes(),
        onPages,
        misaligned);
    Table.printNotes(weights.metadata(), out);
    Table table = new Table("tensor", "dtype", "shape", "offset", "bytes", "encoding", "file");
    for (StoredTensor tensor : weights.tensors().values()) {
      table.row(
          tensor.name(),
          dtype(tensor),
          value(tensor).shape().toString(),
          Long.toString(tensor.extent().offset()),
          Long.toString(tensor.extent().length()),
          encoding(tensor),
          tensor.extent().file().fileName());
    }
    table.print(out);
  }

  /// Returns the tensor as the model has it, if the file says how the tensor is quantised;
  /// otherwise the tensor as it is stored.
  private StoredTensor value(StoredTensor tensor) {
    return weights.quantised().getOrDefault(tensor.name(), tensor);
  }

  /// The dtype, or the quantised type such as `Q4_K`.
  private String dtype(StoredTensor tensor) {
    return value(tensor).encoding() instanceof Encoding.Quantised quantised
        ? quantised.layout()
        : tensor.dtype().name();
  }

  private static String encoding(StoredTensor tensor) {
    return switch (tensor.encoding()) {
      case Encoding.Plain _ -> "plain";
      case Encoding.Strided _ -> "strided";
      case Encoding.Sliced _ -> "sliced";
      case Encoding.Joined _ -> "joined";
      case Encoding.Decoded(String name, _) -> name;
      case Encoding.Quantised quantised -> quantised.layout();
    };
  }
}
