// Validates every SARIF file in a folder against the official schema of SARIF 2.1.0.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import Ajv from 'ajv';

const require = createRequire(import.meta.url);
const load = name => JSON.parse(readFileSync(require.resolve(name), 'utf8'));
const schemaFile = require.resolve('@microsoft/jest-sarif').replace(/index\.js$/, 'schemas/sarif-2.1.0-rtm.5.json');
const ajv = new Ajv({ schemaId: 'auto', allErrors: true, unknownFormats: 'ignore' });
ajv.addMetaSchema(load('ajv/lib/refs/json-schema-draft-04.json'));
const validate = ajv.compile(JSON.parse(readFileSync(schemaFile, 'utf8')));

let bad = 0, checked = 0;
// A file that must fail: the validator is awake.
if (validate({ version: '2.1.0', runs: [{ results: [] }] })) throw new Error('the schema accepts a run without a tool');
for (const name of readdirSync(process.argv[2]).filter(file => file.endsWith('.sarif'))) {
  ++checked;
  if (!validate(JSON.parse(readFileSync(`${process.argv[2]}/${name}`, 'utf8')))) {
    ++bad;
    for (const error of validate.errors.slice(0, 10)) console.error(`${name}: ${error.dataPath} ${error.message}`);
  }
}
if (!checked) throw new Error('no SARIF files to check');
console.log(`${checked} SARIF files checked, ${bad} invalid`);
process.exit(bad ? 1 : 0);
