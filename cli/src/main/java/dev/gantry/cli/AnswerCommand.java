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
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.LoadOptions;
import dev.gantry.models.Chat;
import dev.gantry.models.ChatMessage;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextGenerator;
import dev.gantry.models.TextOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `answer`: loads a folder of the hub as a model, and computes its answer to given inputs.
@Command(
    name = "answer",
    description =
        "Loads a folder with config.json and weights of a known architecture, or a GGUF file of a"
            + " Llama model, and prints the model's outputs for a file of inputs. With --chat, the"
            + " model answers messages.")
final class AnswerCommand extends ReportCommand {
  /// The floating-point type of the model's arithmetic.
  enum Type {
    FLOAT32(DataType.FLOAT32),
    BFLOAT16(DataType.BFLOAT16),
    FLOAT16(DataType.FLOAT16);

    final DataType type;

    Type(DataType type) {
      this.type = type;
    }
  }

  private static final int MAX_ANSWER_TOKENS = 1024;

  @Parameters(
      paramLabel = "FOLDER",
      description = "A model: a folder, a GGUF file, or hf://OWNER/NAME.")
  private Location folder;

  @Option(
      names = "--input",
      paramLabel = "FILE",
      description =
          "A JSON file of inputs: {\"inputs\": {NAME: {\"shape\", \"dtype\", \"values\"}}}.")
  private @Nullable Path input;

  @Option(
      names = "--chat",
      description = "Answers the lines of the standard input, as a conversation.")
  private boolean chat;

  @Option(
      names = "--message",
      paramLabel = "TEXT",
      description = "With --chat: the only message to answer; standard input is not read.")
  private @Nullable String message;

  @Option(
      names = "--dtype",
      paramLabel = "TYPE",
      defaultValue = "FLOAT32",
      description = "The type of the arithmetic: float32 (the default), bfloat16 or float16.")
  private Type type;

  @Mixin private DeviceOption device;

  @Override
  void checkOptions() {
    if (chat == (input != null)) {
      throw new MisuseException("answer takes either --input or --chat");
    }
    if (chat ? json : message != null) {
      throw new MisuseException(
          chat
              ? "--json must not be given with --chat, which prints text"
              : "--message needs --chat");
    }
  }

  @Override
  public Integer call() throws IOException {
    if (!chat) {
      return super.call();
    }
    checkOptions();
    TextOptions options =
        TextOptions.builder().optDevice(device.ofDjl()).optDtype(type.type).build();
    TextGenerator generator = TextGenerator.builder().optMaxTokens(MAX_ANSWER_TOKENS).build();
    try (Chat model = hub().chat(options, generator)) {
      List<ChatMessage> conversation = new ArrayList<>();
      if (message != null) {
        answer(model, conversation, message);
        return 0;
      }
      BufferedReader lines =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        answer(model, conversation, line);
      }
    }
    return 0;
  }

  private HubModel hub() {
    return switch (folder) {
      case Location.Local(Path path, _) -> HubModel.of(path);
      case Location.Remote remote -> HubModel.of(remote.uri().toString());
    };
  }

  private void answer(Chat model, List<ChatMessage> conversation, String said) {
    conversation.add(ChatMessage.user(said));
    PrintWriter out = spec.commandLine().getOut();
    StringBuilder answer = new StringBuilder();
    model.stream(conversation)
        .forEachRemaining(piece -> {
          answer.append(piece);
          out.print(piece);
          out.flush();
        });
    out.println();
    out.flush();
    conversation.add(ChatMessage.assistant(answer.toString()));
  }

  @Override
  Report report(GantrySession session) {
    Path file = Objects.requireNonNull(input);
    HubModel hub = hub();
    Inputs inputs = Inputs.read(session, file, hub);
    AtomicReference<TransferReport> transfer = new AtomicReference<>(TransferReport.NOTHING);
    LoadOptions options =
        LoadOptions.builder()
            .optCast(type.type)
            .optReport(part -> transfer.updateAndGet(before -> before.plus(part)))
            .build();
    // DJL's engine is started before the clock, because its start is no part of the load.
    ai.djl.Device target = device.ofDjl();
    long start = System.nanoTime();
    try (Model model = fitting(folder, "tensors-do-not-fit", () -> hub.load(target, options))) {
      double seconds = (System.nanoTime() - start) / 1e9;
      SequencedMap<String, Answer.Output> outputs =
          fitting(Location.of(file), "wrong-input", () -> outputs(hub, model, inputs));
      return new Answer(outputs, seconds, transfer.get());
    }
  }

  /// Runs `action`, and reports a misuse as a malformed file: in this command, weights and inputs
  /// come from files and not from a caller.
  private static <T> T fitting(Location file, String kind, Supplier<T> action) {
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
