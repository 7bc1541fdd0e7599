// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.training.ParameterStore;
import dev.gantry.cli.internal.answer.Answer;
import dev.gantry.cli.internal.answer.Inputs;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.models.HubModel;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `answer`: loads a folder of the hub as a model, and computes its answer to given inputs.
@Command(
    name = "answer",
    description =
        "Loads a folder with config.json and weights of a known architecture (BERT, GPT-2, Llama,"
            + " ResNet, ViT), or a GGUF file of Llama's, and prints what the model answers to a"
            + " file of inputs.")
final class AnswerCommand extends ReportCommand {
  /// The floating-point type that the model computes in.
  enum Type {
    FLOAT32(DataType.FLOAT32),
    BFLOAT16(DataType.BFLOAT16),
    FLOAT16(DataType.FLOAT16);

    final DataType type;

    Type(DataType type) {
      this.type = type;
    }
  }

  @Parameters(paramLabel = "FOLDER", description = "A model's folder, or its GGUF file.")
  private Path folder;

  @Option(
      names = "--input",
      paramLabel = "FILE",
      required = true,
      description = "JSON: {\"inputs\": {NAME: {\"shape\", \"dtype\", \"values\"}}}.")
  private Path input;

  @Option(
      names = "--dtype",
      paramLabel = "TYPE",
      defaultValue = "FLOAT32",
      description = "The type of the arithmetic: float32 (the default), bfloat16 or float16.")
  private Type type;

  @Mixin private DeviceOption device;

  @Override
  Report report(GantrySession session) {
    HubModel hub = HubModel.of(folder);
    Inputs inputs = Inputs.read(session, input, hub);
    AtomicReference<TransferReport> transfer = new AtomicReference<>(TransferReport.NOTHING);
    LoadOptions options =
        LoadOptions.builder()
            .optCast(type.type)
            .optReport(part -> transfer.updateAndGet(before -> before.plus(part)))
            .build();
    // Starts DJL's engine before the clock: that is no part of the load.
    ai.djl.Device target = device.ofDjl();
    long start = System.nanoTime();
    try (Model model = fitting(folder, "tensors-do-not-fit", () -> hub.load(target, options))) {
      double seconds = (System.nanoTime() - start) / 1e9;
      SequencedMap<String, Answer.Output> outputs =
          fitting(input, "wrong-input", () -> outputs(hub, model, inputs));
      return new Answer(outputs, seconds, transfer.get());
    }
  }

  /// Runs `action`, and reports its misuse as a malformed file: here weights and inputs come from files, not
  /// from a caller.
  private static <T> T fitting(Path file, String kind, Supplier<T> action) {
    try {
      return action.get();
    } catch (MisuseException e) {
      throw new MalformedFileException(file, 0, kind, String.valueOf(e.getMessage()));
    }
  }

  private static SequencedMap<String, Answer.Output> outputs(
      HubModel hub, Model model, Inputs inputs) {
    SequencedMap<String, Answer.Output> outputs = new LinkedHashMap<>();
    try (NDManager manager = model.getNDManager().newSubManager()) {
      NDList answers =
          model
              .getBlock()
              .forward(
                  new ParameterStore(manager, false), hub.arranged(inputs.arrays(manager)), false);
      for (int i = 0; i < answers.size(); i++) {
        NDArray answer = answers.get(i);
        outputs.put(
            hub.outputs().get(i),
            new Answer.Output(
                TensorShape.of(answer.getShape().getShape()),
                answer.toType(DataType.FLOAT32, false).toFloatArray()));
      }
    }
    return outputs;
  }
}
