// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.answer;

import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Json.JsonObject;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.cli.internal.output.Transfers;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.SequencedMap;

/// Reports a model's outputs, and how its weights were loaded.
///
/// @param seconds the duration of the load, from opening the data files until the block can
///     compute
public record Answer(SequencedMap<String, Output> outputs, double seconds, TransferReport transfer)
    implements Report {
  private static final int SHOWN = 4;

  /// One of the model's outputs.
  public static final class Output {
    private final TensorShape shape;
    private final float[] values;

    /// @param values the output's values in C order
    public Output(TensorShape shape, float... values) {
      this.shape = shape;
      this.values = values;
    }

    private String shown() {
      StringBuilder text = new StringBuilder();
      for (int i = 0; i < Math.min(SHOWN, values.length); i++) {
        text.append(String.format(Locale.ROOT, "%.5g ", values[i]));
      }
      return values.length > SHOWN ? text + "…" : text.toString().stripTrailing();
    }
  }

  @Override
  public void print(PrintWriter out) {
    Table table = new Table("output", "shape", "values");
    outputs.forEach((name, output) -> table.row(name, output.shape.toString(), output.shown()));
    table.print(out);
    out.printf(
        Locale.ROOT,
        "loaded %,d bytes in %.3f s by %s%n",
        transfer.bytes(),
        seconds,
        Transfers.transports(transfer.bytesByTransport()));
  }

  @Override
  public Object json() {
    JsonObject answers = Json.object();
    outputs.forEach((name, output) ->
        answers.with(
            name, Json.object().with("shape", output.shape).with("values", output.values)));
    return Json.object()
        .with("outputs", answers)
        .with(
            "load",
            Json.object()
                .with("seconds", seconds)
                .with("bytes", transfer.bytes())
                .with("transport", Transfers.json(transfer)));
  }
}
