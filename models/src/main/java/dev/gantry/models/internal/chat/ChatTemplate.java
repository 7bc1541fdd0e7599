// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import com.hubspot.jinjava.Jinjava;
import com.hubspot.jinjava.JinjavaConfig;
import com.hubspot.jinjava.LegacyOverrides;
import com.hubspot.jinjava.interpret.Context;
import com.hubspot.jinjava.interpret.RenderResult;
import com.hubspot.jinjava.interpret.TemplateError;
import com.hubspot.jinjava.lib.fn.ELFunctionDefinition;
import com.hubspot.jinjava.objects.date.InvalidDateFormatException;
import com.hubspot.jinjava.objects.date.StrftimeFormatter;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.TextFile;
import dev.gantry.formats.internal.json.JsonTree;
import dev.gantry.formats.spi.FileBytes;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// A folder's chat template, which turns a conversation into one text. The text of a message is
/// never evaluated as a template. Immutable, thread-safe.
public final class ChatTemplate {
  private static final long MAX_BYTES = 16 << 20;
  private static final long MAX_TEXT = 1 << 26;
  private static final Pattern BRANCH =
      Pattern.compile("\\{%[-+]?\\s*(for|if|else|endfor|endif)\\b(.*?)%}", Pattern.DOTALL);
  private static final Pattern CONDITION =
      Pattern.compile("\\sif\\s(?!.*\\selse\\s)", Pattern.DOTALL);
  private static final Optional<String> DEFAULT = Optional.of("default");
  private static final Jinjava JINJA = jinja();

  private final Path file;
  private final String template;
  private final Map<String, Object> words;

  private ChatTemplate(Path file, String template, Map<String, Object> words) {
    this.file = file;
    this.template = template;
    this.words = words;
  }

  private static Jinjava jinja() {
    Jinjava jinja =
        new PythonJinja(
            JinjavaConfig.newBuilder()
                .withNestedInterpretationEnabled(false)
                .withMaxOutputSize(MAX_TEXT)
                .withInterperterFactory(new PythonJinja.Interpreters())
                .withElResolver(new PythonMethods())
                .withLegacyOverrides(
                    LegacyOverrides.newBuilder()
                        .withParseWhitespaceControlStrictly(true)
                        .withUseTrimmingForNotesAndExpressions(true)
                        .withKeepNullableLoopValues(true)
                        .withEvaluateMapKeys(true)
                        .withUseNaturalOperatorPrecedence(true)
                        .build())
                .build());
    Context all = jinja.getGlobalContext();
    all.registerFunction(function("raise_exception", "raise"));
    all.registerFunction(function("strftime_now", "now"));
    all.registerExpTest(new None.Test());
    all.put("none", None.NONE);
    all.put("None", None.NONE);
    return jinja;
  }

  private static ELFunctionDefinition function(String name, String method) {
    return new ELFunctionDefinition("", name, ChatTemplate.class, method, String.class);
  }

  /// Reads the template from `chat_template.jinja`, or else from `chat_template` of
  /// `tokenizer_config.json`. Reads the special tokens from `tokenizer_config.json`.
  ///
  /// @throws MisuseException if the folder has no template
  /// @throws MalformedFileException if a file is invalid
  public static ChatTemplate read(Path folder) {
    Path config = folder.resolve("tokenizer_config.json");
    JsonTree members = Files.isRegularFile(config) ? members(config) : JsonTree.EMPTY;
    Path file = folder.resolve("chat_template.jinja");
    boolean own = Files.isRegularFile(file);
    String template =
        own
            ? TextFile.read(GantrySession.shared(), Location.of(file), MAX_BYTES)
            : template(members);
    if (template == null) {
      throw new MisuseException(
          "a chat needs chat_template.jinja, or chat_template in tokenizer_config.json, in "
              + folder);
    }
    Map<String, Object> words = new HashMap<>();
    for (String name : List.of("bos_token", "eos_token", "unk_token", "pad_token")) {
      // A special token may be an object with properties.
      members
          .text(name)
          .or(() -> members.object(name).text("content"))
          .ifPresent(word -> words.put(name, word));
    }
    Path from = own ? file : config;
    requireKnown(from, template);
    return new ChatTemplate(from, rewritten(template), words);
  }

  private static JsonTree members(Path config) {
    try (FileBytes bytes = FileBytes.open(GantrySession.shared(), config)) {
      return JsonTree.read(bytes);
    }
  }

  /// Returns the only template, or the one that is named `default`.
  private static @Nullable String template(JsonTree members) {
    List<?> several = members.get("chat_template", List.class).orElse(List.of());
    return members
        .text("chat_template")
        .or(() ->
            several.stream()
                .filter(each -> each instanceof JsonTree one && one.text("name").equals(DEFAULT))
                .findFirst()
                .flatMap(each -> ((JsonTree) each).text("template")))
        .orElse(null);
  }

  /// Refuses constructs that Jinjava silently ignores: loops with a condition or with an `else`.
  private static void requireKnown(Path file, String template) {
    Deque<String> open = new ArrayDeque<>();
    Matcher tag = BRANCH.matcher(template);
    while (tag.find()) {
      String name = tag.group(1);
      boolean chooses = name.equals("for") && CONDITION.matcher(tag.group(2)).find();
      if (chooses || (name.equals("else") && "for".equals(open.peek()))) {
        throw malformed(
            file, "a loop with '%s' is not known here".formatted(chooses ? "if" : "else"));
      }
      if (name.startsWith("end")) {
        open.poll();
      } else if (!name.equals("else")) {
        open.push(name);
      }
    }
  }

  private static MalformedFileException malformed(Path file, String fault) {
    return new MalformedFileException(Location.of(file), 0, "chat-template", fault);
  }

  /// Rewrites a template for Jinjava. It removes the blanks before a block on its line and the
  /// line end after a block, as the reference does; Jinjava's own option would also remove blanks
  /// before an expression. It also rewrites three constructs that Jinjava does not parse: a
  /// reversed list, a named argument that is a sum, and the marks of the model's answers, which
  /// only trainings need.
  private static String rewritten(String template) {
    return PythonJinja.decided(Negations.bracketed(template))
        .replaceFirst("\n$", "")
        .replaceAll("(?m)^[ \t]+(?=\\{[%#](?!\\+))", "")
        .replaceAll("((?<!\\+)[%#]})\n", "$1")
        .replace("[::-1]", "|reverse|list")
        .replaceAll("(\\{%[-+]?\\s*)generation\\b", "$1if true")
        .replaceAll("(\\{%[-+]?\\s*)endgeneration\\b", "$1endif")
        .replaceAll("(\\w=)(\\w[\\w.]*(?:\\|\\w+)? *[-+] *\\w+)", "$1($2)");
  }

  /// @param messages the messages, each with a `role` and a `content`
  /// @param begin whether the beginning of an answer follows the last message
  /// @throws MisuseException if the template refuses the conversation
  /// @throws MalformedFileException if the template is invalid, or Jinjava cannot render it
  public String render(List<Map<String, String>> messages, boolean begin) {
    Map<String, Object> given = new HashMap<>(words);
    given.put("messages", messages);
    given.put("tools", None.NONE);
    given.put("documents", None.NONE);
    given.put("add_generation_prompt", begin);
    // Templates test whether this function exists.
    given.put("strftime_now", true);
    RenderResult result = JINJA.renderForResult(template, given);
    for (TemplateError error : result.getErrors()) {
      for (Throwable fault = error.getException(); fault != null; fault = fault.getCause()) {
        if (fault instanceof MisuseException refusal) {
          throw refusal;
        }
      }
      throw malformed(file, "line %d: %s".formatted(error.getLineno(), error.getMessage()));
    }
    requireKnown(result.getContext());
    return result.getOutput();
  }

  /// Refuses filters and tests that Jinjava does not know, because it would silently treat their
  /// results as empty.
  private void requireKnown(Context rendered) {
    for (String name : new TreeSet<>(rendered.getResolvedValues())) {
      String last = name.substring(name.indexOf(':') + 1);
      if ((name.startsWith("filter:") && rendered.getFilter(last) == null)
          || (name.startsWith("exptest:") && rendered.getExpTest(last) == null)) {
        throw malformed(
            file,
            "the %s '%s' is not known here"
                .formatted(name.startsWith("filter") ? "filter" : "test", last));
      }
    }
  }

  /// Refuses a conversation. The function `raise_exception` of templates calls this.
  @SuppressWarnings("DoNotCallSuggester") // Jinjava calls it.
  public static String raise(String reason) {
    throw new MisuseException("the chat template refuses the conversation: " + reason);
  }

  /// Returns the present time as text. The function `strftime_now` of templates calls this.
  public static String now(String format) {
    try {
      return StrftimeFormatter.format(
          ZonedDateTime.now(ZoneId.systemDefault()), format, Locale.ENGLISH);
    } catch (InvalidDateFormatException _) {
      throw new MisuseException("strftime_now does not know " + format);
    }
  }
}
