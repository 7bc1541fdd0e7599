// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.chat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class ChatTemplateTest {
  private static final Path TEMPLATES = Path.of("src/test/resources/chat");
  private static final List<Map<String, String>> HI =
      List.of(Map.of("role", "user", "content", "Hi"));

  @TempDir private Path folder;

  static Stream<JsonObject> cases() throws IOException {
    JsonElement all = JsonParser.parseString(Files.readString(TEMPLATES.resolve("expected.json")));
    return StreamSupport.stream(all.getAsJsonArray().spliterator(), false)
        .map(JsonElement::getAsJsonObject);
  }

  private ChatTemplate template(String text) throws IOException {
    Files.writeString(folder.resolve("chat_template.jinja"), text);
    Files.writeString(
        folder.resolve("tokenizer_config.json"),
        "{\"bos_token\": {\"content\": \"<s>\", \"lstrip\": false}, \"eos_token\": \"</s>\"}");
    return ChatTemplate.read(folder);
  }

  @ParameterizedTest
  @MethodSource("cases")
  void conversationsBecomeTheTextsOfTheReference(JsonObject given) throws IOException {
    ChatTemplate template =
        template(Files.readString(TEMPLATES.resolve(given.get("template").getAsString())));
    List<Map<String, String>> messages = new ArrayList<>();
    for (JsonElement each : given.get("messages").getAsJsonArray()) {
      JsonObject message = each.getAsJsonObject();
      // The reference's dictionaries keep their order; a test asks for it.
      Map<String, String> ordered = new LinkedHashMap<>();
      message.asMap().forEach((name, value) -> ordered.put(name, value.getAsString()));
      messages.add(ordered);
    }
    boolean begin = given.get("begin").getAsBoolean();
    if (given.has("refused")) {
      assertThatThrownBy(() -> template.render(messages, begin))
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "the chat template refuses the conversation: " + given.get("refused").getAsString());
    } else {
      assertThat(template.render(messages, begin)).isEqualTo(given.get("text").getAsString());
    }
  }

  @Test
  void aTemplateIsInTheConfigurationToo() throws IOException {
    Path config = folder.resolve("tokenizer_config.json");
    Files.writeString(config, "{\"chat_template\": \"{{ messages[0].content }}!\"}");
    assertThat(ChatTemplate.read(folder).render(HI, true)).isEqualTo("Hi!");
    Files.writeString(
        config,
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"no\"},"
            + " {\"name\": \"default\", \"template\": \"yes\"}]}");
    assertThat(ChatTemplate.read(folder).render(HI, true)).isEqualTo("yes");
    Files.writeString(config, "{\"chat_template\": null}");
    assertThatThrownBy(() -> ChatTemplate.read(folder))
        .isInstanceOf(MisuseException.class)
        .hasMessageContainingAll("chat_template.jinja", folder.toString());
    Files.writeString(config, "[");
    assertThatThrownBy(() -> ChatTemplate.read(folder)).isInstanceOf(MalformedFileException.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"{% if %}", "{{ 'a' + }}", "{% nothing %}"})
  void aTemplateThatCannotBeRenderedIsRefused(String text) throws IOException {
    ChatTemplate template = template(text);
    assertThatThrownBy(() -> template.render(HI, true))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("chat_template.jinja");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{{ messages | odd }}",
        "{% if messages[0] is odder %}{% endif %}",
        "{% macro f(a) %}{{ a | odd }}{% endmacro %}{% for i in [1] %}{{ f(i) }}{% endfor %}"
      })
  void filtersAndTestsThatAreNotKnownAreRefusedWhereTheyAreUsed(String text) throws IOException {
    assertThat(template("{% if false %}" + text + "{% endif %}").render(HI, true)).isEmpty();
    assertThatThrownBy(() -> template(text).render(HI, true))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("chat_template.jinja", "' is not known here");
  }

  @Test
  void aTemplateThatIsNoTextIsRefused() throws IOException {
    Files.write(folder.resolve("chat_template.jinja"), new byte[] {(byte) 0xe9, ' '});
    assertThatThrownBy(() -> ChatTemplate.read(folder))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("chat_template.jinja", "invalid-utf8");
  }

  /// The templates and the texts that Jinja2 3.1 renders from them.
  @ParameterizedTest
  @CsvSource(
      delimiter = '#',
      value = {
        "{{ 'a' if nothing == none else 'b' }} # b",
        "{{ 'a' if nothing is none else 'b' }} # b",
        "{{ 'a' if messages[0].nothing is not none else 'b' }} # a",
        "{{ 'a' if messages[0].get('nothing') is none else 'b' }} # a",
        "{{ 'a' if tools is defined and tools == none and not tools else 'b' }} # a",
        "{% set x = none %}{{ 'a' if x is none else 'b' }}{{ x }} # aNone",
        "{{ none|default('d') }}{{ nothing|default('d') }}{{ none or 'd' }} # Nonedd",
        "{% set n = namespace(x=none) %}{{ n.x is none }}{% set n.x = 1 %}{{ n.x }} # True1"
      })
  void noneIsAValueAndWhatIsNotThereIsNotNone(String text, String rendered) throws IOException {
    assertThat(template(text).render(HI, true)).isEqualTo(rendered);
  }

  /// The templates and the texts that Jinja2 3.1 renders from them with the filter `tojson` of transformers.
  @ParameterizedTest
  @CsvSource(
      delimiter = '#',
      quoteCharacter = '`',
      value = {
        "{{ 'a' and 'b' }}{{ '' and 'b' }}{{ [] and 1 }}{{ 1 and true and 'c' }} # b[]c",
        "{% if 'a' and 'false' %}x{% endif %}{{ 'y' if 1 and '' else 'n' }} # xn",
        "{{ loop is defined }}{{ true }}{{ '' ~ false ~ none }}{{ [true, none] }} #"
            + " FalseTrueFalseNone[True, None]",
        "{{ {'a': 'x', 'b': [1, 'it\\'s']} }} # {'a': 'x', 'b': [1, \"it's\"]}",
        "{{ messages | tojson }} # [{\"role\": \"user\", \"content\": \"Hi\"}]",
        "{{ {'a': [1, 2.5, none, true], 'b': []} | tojson }} # {\"a\": [1, 2.5, null, true], \"b\":"
            + " []}",
        "{{ ['<\u001f\u007f\u00e9'] | tojson(indent=2) }} # [|  \"<\\u001f\u007f\u00e9\"|]"
      })
  void valuesAndTheirTextsAreThoseOfPython(String text, String rendered) throws IOException {
    Map<String, String> hi = new LinkedHashMap<>();
    hi.put("role", "user");
    hi.put("content", "Hi");
    assertThat(template(text).render(List.of(hi), true)).isEqualTo(rendered.replace('|', '\n'));
  }

  @Test
  void optionsOfTojsonThatAreNotKnownAreRefused() throws IOException {
    assertThatThrownBy(() -> template("{{ 'a' | tojson(sort_keys=true) }}").render(HI, true))
        .isInstanceOf(MisuseException.class)
        .hasMessage("the chat template's filter tojson takes no sort_keys here");
  }

  /// To Jinjava alone, the text `false` is false.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "{% if messages[0].content %}yes{% endif %}",
        "{%- if messages[0].content == 'x' -%} no {%- elif messages[0].content -%} yes {%- endif"
            + " -%}",
        "{% if messages[0].role and not (not messages[0].content) %}yes{% endif %}",
        "{{ 'yes' if messages[0].content else 'no' }}",
        "{{ 'yes' if (messages[0].content or 'no') == messages[0].content }}",
        "{{ 'yes' if messages[0].content|default('no', true) == messages[0].content }}"
      })
  void aMessageThatIsFalseIsATextAsAnyOther(String text) throws IOException {
    List<Map<String, String>> messages = List.of(Map.of("role", "user", "content", "False"));
    assertThat(template(text).render(messages, true)).isEqualTo("yes");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{{ messages[0].content|trim }}",
        "{{ messages[0].content.strip() }}",
        "{{ messages[0].content.split()|join('\u3000') }}"
      })
  void theBlanksOfAllLanguagesAreBlanks(String text) throws IOException {
    List<Map<String, String>> messages =
        List.of(Map.of("role", "user", "content", "\u3000\u00a0\u4f60\u3000\u597d\u2028\u001c\n"));
    assertThat(template(text).render(messages, true)).isEqualTo("\u4f60\u3000\u597d");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{% for m in messages if m.role != 'x' %}{% endfor %}",
        "{%- for m in messages -%}{% if a %}{% else %}{% endif %}{%- else %}no{% endfor %}"
      })
  void loopsThatWouldBeRenderedWronglyAreRefused(String text) {
    assertThatThrownBy(() -> template(text))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("chat_template.jinja", "a loop with '");
  }

  @Test
  void aLoopMayHaveAChoiceOfLists() throws IOException {
    assertThat(
            template("{% for m in (messages if messages else []) %}{{ m.content }} {% endfor %}")
                .render(HI, true))
        .isEqualTo("Hi ");
  }

  /// All are true of the conversation, by Python's precedence.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "not messages[0].role == 'system'",
        "not messages|length == 2",
        "not 'z' in messages[0].content",
        "not messages[0].tool is defined",
        "not (not messages[0].role is defined)",
        "not not messages[0].role is string",
        "not messages[0].tool is defined and add_generation_prompt",
        "not messages[0].content.startswith('not (') == true",
        "messages[0].content not in ['not', 'a'] and messages[0].tool is not defined",
        "[not messages|length == 2, not 1 == 1][0] == true",
        "(1 if not messages|length == 2 else 2) == 1"
      })
  void notDeniesAWholeComparison(String condition) throws IOException {
    assertThat(template("{%- if " + condition + " -%} yes {%- endif %}").render(HI, true))
        .isEqualTo("yes");
    assertThat(template("{{ 'yes' if " + condition + "}}").render(HI, true)).isEqualTo("yes");
  }

  @Test
  void datesAreWrittenAsPythonWritesThem() {
    assertThat(ChatTemplate.now("%d %b %Y, %H:%M %%"))
        .matches("\\d\\d [A-Z][a-z][a-z] 20\\d\\d, \\d\\d:\\d\\d %");
    assertThat(ChatTemplate.now("%B")).matches("[A-Z][a-z]+");
    assertThatThrownBy(() -> ChatTemplate.now("%Q")).hasMessage("strftime_now does not know %Q");
  }
}
